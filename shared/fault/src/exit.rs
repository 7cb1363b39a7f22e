//! Exit statuses of the programs' own failures.
//!
//! A command that ran keeps its own status; these classes are only for what Farrun itself has to say. The numbers are
//! a public interface: scripts branch on them.

/// Why a program of ours ends with other than the command's own status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExitClass {
    /// 2: the request or the command line is wrong; nothing was attempted.
    Usage,
    /// 69: the command never left for a node, or the service is unavailable; a retry cannot run it twice.
    NotDispatched,
    /// 70: a defect or an impossible state of ours.
    Internal,
    /// 74: the command may have run; nobody knows.
    OutcomeUnknown,
    /// 77: policy, rights or a person said no.
    Refused,
    /// 124: the deadline passed and the command was stopped.
    TimedOut,
    /// 126: the command was permitted but could not be started.
    CouldNotStart,
    /// 127: the program that should be started does not exist.
    CommandNotFound,
    /// 128 + n: ended by signal number n.
    Signal(u8),
}

impl ExitClass {
    /// The process exit status, 0 to 255. A signal number over 127 saturates at 255.
    #[must_use]
    pub const fn status(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::NotDispatched => 69,
            Self::Internal => 70,
            Self::OutcomeUnknown => 74,
            Self::Refused => 77,
            Self::TimedOut => 124,
            Self::CouldNotStart => 126,
            Self::CommandNotFound => 127,
            Self::Signal(number) => 128_u8.saturating_add(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ExitClass;

    #[test]
    fn numbers_are_stable() {
        let table = [
            (ExitClass::Usage, 2),
            (ExitClass::NotDispatched, 69),
            (ExitClass::Internal, 70),
            (ExitClass::OutcomeUnknown, 74),
            (ExitClass::Refused, 77),
            (ExitClass::TimedOut, 124),
            (ExitClass::CouldNotStart, 126),
            (ExitClass::CommandNotFound, 127),
            (ExitClass::Signal(9), 137),
            (ExitClass::Signal(15), 143),
            (ExitClass::Signal(200), 255),
        ];
        for (class, number) in table {
            assert_eq!(class.status(), number, "{class:?}");
        }
    }
}

//! Unix sockets at paths of any length.
//!
//! A socket address holds about 100 bytes; state directories can be deeper.
//! On Linux the directory is opened first and the socket reached through its
//! descriptor.

use std::io;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// Longest path that fits into a socket address with room to spare.
const DIRECT_MAX: usize = 100;

/// Listens at `path`; a stale socket there is replaced. The caller makes sure
/// (by a lock) that nobody else is serving it.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let short = Short::of(path)?;
    let listener = UnixListener::bind(&short.path)?;
    // The directory is 0700 already; the mode makes it plain.
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(listener)
}

/// Connects to the socket at `path`.
pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    let short = Short::of(path)?;
    UnixStream::connect(&short.path).await
}

/// A path that fits, and what it needs to stay valid.
struct Short {
    path: PathBuf,
    _directory: Option<std::fs::File>,
}

impl Short {
    fn of(path: &Path) -> io::Result<Self> {
        if path.as_os_str().len() <= DIRECT_MAX || !cfg!(target_os = "linux") {
            return Ok(Self { path: path.to_path_buf(), _directory: None });
        }
        use std::os::fd::AsRawFd as _;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a socket path names a file"));
        };
        let directory = std::fs::File::open(parent)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name);
        Ok(Self { path, _directory: Some(directory) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn long_paths_work_and_stale_sockets_are_replaced() {
        let base = std::env::temp_dir().join(format!("farrun-unix-{}", std::process::id()));
        let deep = base.join("d".repeat(100)).join("e".repeat(60));
        std::fs::create_dir_all(&deep).unwrap();
        for path in [base.join("sock"), deep.join("sock")] {
            drop(bind(&path).unwrap());
            let listener = bind(&path).unwrap();
            let mut client = connect(&path).await.unwrap();
            let (mut server, _) = listener.accept().await.unwrap();
            client.write_all(b"x").await.unwrap();
            assert_eq!(server.read_u8().await.unwrap(), b'x');
        }
        std::fs::remove_dir_all(&base).unwrap();
    }
}

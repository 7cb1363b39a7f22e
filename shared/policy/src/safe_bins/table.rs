//! The built-in profiles, as data (policy spec §4.2).
//!
//! Flags are separated by spaces. A flag that is in no list is unknown; an unknown flag is refused.

/// What one program may be told.
pub(super) struct BuiltIn {
    /// Its name.
    pub(super) name: &'static str,
    /// It is a safe bin unless the configuration says otherwise.
    pub(super) by_default: bool,
    /// Fewest positional arguments.
    pub(super) min_positional: usize,
    /// Most positional arguments. Where it is 0, the program takes its operands for files.
    pub(super) max_positional: usize,
    /// Flags that take a value.
    pub(super) values: &'static str,
    /// Flags that take a value, which some systems take only when it is attached. What follows them is a file there, so
    /// it must be a number.
    pub(super) counts: &'static str,
    /// Flags whose value must be a number, perhaps with a unit: an old way of reading them takes no value, and what
    /// follows is a file.
    pub(super) sizes: &'static str,
    /// Flags whose value must be attached: what follows them is a file.
    pub(super) attached: &'static str,
    /// Flags without a value.
    pub(super) switches: &'static str,
    /// Flags that read or write files, or start programs.
    pub(super) denied: &'static str,
    /// Arguments that an old way of writing flags gives another meaning than their letters have.
    pub(super) denied_words: &'static str,
    /// Long flags of GNU and BSD that are not accepted. They are here so that what is short for one of ours and in truth
    /// names one of these (`grep --binary`) is not taken for ours.
    pub(super) others: &'static str,
}

/// The programs that have a profile. The tables of `jq`, `awk` and `sed` are missing on purpose: no arguments make them
/// safe.
pub(super) const BUILT_IN: [BuiltIn; 8] = [
    BuiltIn {
        name: "cut",
        by_default: true,
        min_positional: 0,
        max_positional: 0,
        values: "-b -c -f -d --bytes --characters --fields --delimiter --output-delimiter",
        counts: "",
        sizes: "",
        attached: "",
        switches: "-n -s -z --complement --only-delimited --zero-terminated",
        denied: "",
        denied_words: "",
        others: "--help --version --whitespace-delimited",
    },
    BuiltIn {
        name: "uniq",
        by_default: true,
        min_positional: 0,
        max_positional: 0,
        values: "-f -s -w --skip-fields --skip-chars --check-chars",
        counts: "",
        sizes: "",
        attached: "--group",
        switches: "-c -d -u -i -z --count --repeated --unique --ignore-case --zero-terminated",
        denied: "",
        denied_words: "",
        others: "--help --version --all-repeated",
    },
    BuiltIn {
        name: "head",
        by_default: true,
        min_positional: 0,
        max_positional: 0,
        values: "",
        counts: "",
        sizes: "-n -c --lines --bytes",
        attached: "",
        switches: "-q -v -z --quiet --silent --verbose --zero-terminated",
        denied: "",
        denied_words: "",
        others: "--help --version --presume-input-pipe",
    },
    BuiltIn {
        name: "tail",
        by_default: true,
        min_positional: 0,
        max_positional: 0,
        values: "--sleep-interval --max-unchanged-stats --pid",
        counts: "",
        sizes: "-n -c --lines --bytes",
        attached: "",
        switches: "-q -v -z --quiet --silent --verbose --zero-terminated",
        denied: "-f -F --follow --retry",
        // To GNU it is `-c -f`, not `-c` with a value.
        denied_words: "-cf",
        others: "--help --version --blocks --debug --disable-inotify --presume-input-pipe --use-polling",
    },
    BuiltIn {
        name: "tr",
        by_default: true,
        min_positional: 1,
        max_positional: 2,
        values: "",
        counts: "",
        sizes: "",
        attached: "",
        switches: "-C -c -d -s -t --complement --delete --squeeze-repeats --truncate-set1",
        denied: "",
        denied_words: "",
        others: "--help --version",
    },
    BuiltIn {
        name: "wc",
        by_default: true,
        min_positional: 0,
        max_positional: 0,
        values: "",
        counts: "",
        sizes: "",
        attached: "",
        switches: "-c -l -m -w -L --bytes --lines --chars --words --max-line-length",
        denied: "--files0-from",
        denied_words: "",
        others: "--help --version --debug --libxo --total",
    },
    BuiltIn {
        name: "grep",
        by_default: false,
        min_positional: 0,
        max_positional: 0,
        values: "-e -m -A -B -D --regexp --max-count --after-context --before-context --devices --binary-files \
                 --exclude --include --label",
        counts: "-C --context",
        sizes: "",
        attached: "",
        switches: "",
        denied: "-f -d -r -R --file --exclude-from --dereference-recursive --directories --recursive",
        denied_words: "",
        others: "--help --version --basic-regexp --binary --byte-offset --bz2decompress --color --colour --count \
                 --decompress --exclude-dir --extended-regexp --files-with-matches --files-without-match \
                 --fixed-regexp --fixed-strings --group-separator --ignore-case --include-dir --initial-tab \
                 --invert-match --line-buffered --line-number --line-regexp --lzma --lzmadecompress --mmap \
                 --no-filename --no-group-separator --no-ignore-case --no-messages --null --null-data \
                 --only-matching --perl-regexp --quiet --silent --text --unix-byte-offsets --with-filename \
                 --word-regexp --xz --xzdecompress --zgrep",
    },
    BuiltIn {
        name: "sort",
        by_default: false,
        min_positional: 0,
        max_positional: 0,
        values: "-k -t -S --key --field-separator --buffer-size --parallel --batch-size",
        counts: "",
        sizes: "",
        attached: "",
        switches: "",
        denied: "-o -T --compress-program --files0-from --output --random-source --temporary-directory",
        denied_words: "",
        others: "--help --version --check --debug --dictionary-order --general-numeric-sort --heapsort \
                 --human-numeric-sort --ignore-case --ignore-leading-blanks --ignore-nonprinting --merge \
                 --mergesort --mmap --month-sort --numeric-sort --qsort --radixsort --random-sort --reverse --sort \
                 --stable --unique --version-sort --zero-terminated",
    },
];

//! Every row of §5, with the misses listed at its end, and field cases F015, F024 and F025.

use super::*;
use crate::fake::words;

fn check(table: &[(&str, &str, &str)], input: Input) {
    for &(text, program, form) in table {
        let expected = InlineEval { program: program.to_owned(), form: form.to_owned() };
        assert_eq!(find_inline_eval(&words(text), input), Some(expected), "{text}");
    }
}

fn check_none(table: &[&str], input: Input) {
    for &text in table {
        assert_eq!(find_inline_eval(&words(text), input), None, "{text}");
    }
}

#[test]
fn the_table_is_sorted() {
    assert!(table::TABLE.is_sorted_by(|a, b| a.0 < b.0));
}

#[test]
fn code_in_options() {
    check(
        &[
            ("python3 -c x", "python3", "-c"),
            ("python3.11 -c x", "python3", "-c"),
            ("python3 -xcprint", "python3", "-c"),
            ("python -Ic x", "python", "-c"),
            ("python2 -cCODE", "python2", "-c"),
            ("/usr/bin/PyPy3.exe -uc x", "pypy3", "-c"),
            ("python3 -W ignore -c x", "python3", "-c"),
            ("python3 -bW -c -c x", "python3", "-c"),
            ("python3 s.py -c x", "python3", "-c"),
            ("python3 -m http.server", "python3", "-m"),
            ("python3 -", "python3", "standard input"),
            ("python3 /dev/stdin", "python3", "standard input"),
            ("node -e x", "node", "-e"),
            ("nodejs18 --eval=x", "nodejs", "--eval"),
            ("node -p x", "node", "-p"),
            ("node -pe x", "node", "-p"),
            ("node --print x", "node", "--print"),
            ("node -r ./x s.js", "node", "-r"),
            ("bun -e x", "bun", "-e"),
            ("bun eval x", "bun", "eval"),
            ("deno eval x", "deno", "eval"),
            ("deno --eval=x", "deno", "--eval"),
            ("deno run -", "deno", "standard input"),
            ("ruby -e x", "ruby", "-e"),
            ("ruby -ne x", "ruby", "-e"),
            ("ruby -W0e x", "ruby", "-e"),
            ("ruby -exyz", "ruby", "-e"),
            ("irb -e x", "irb", "-e"),
            ("perl -E x", "perl", "-E"),
            ("perl -lane x", "perl", "-e"),
            ("perl -0777ne x", "perl", "-e"),
            ("perl -pie x", "perl", "-e"),
            ("perl -ne x", "perl", "-e"),
            ("php -r x", "php", "-r"),
            ("php -Bx", "php", "-B"),
            ("php -E x", "php", "-E"),
            ("php -R x", "php", "-R"),
            ("php -F x", "php", "-F"),
            ("php -nr x", "php", "-r"),
            ("lua5.4 -e x", "lua", "-e"),
            ("luajit -e x", "luajit", "-e"),
            ("osascript -e x", "osascript", "-e"),
            ("R -e x", "r", "-e"),
            ("Rscript -e x", "rscript", "-e"),
            ("julia -E x", "julia", "-E"),
            ("julia --eval=x", "julia", "--eval"),
            ("julia -L f x.jl", "julia", "-L"),
            ("elixir --rpc-eval n x", "elixir", "--rpc-eval"),
            ("iex -e x", "iex", "-e"),
            ("guile -c x", "guile", "-c"),
            ("groovy -ne x", "groovy", "-e"),
            ("scala -e x", "scala", "-e"),
            ("scala-cli --script-snippet x", "scala-cli", "--script-snippet"),
            ("clj -e x", "clj", "-e"),
            ("clojure --eval x", "clojure", "--eval"),
            ("raku -ne x", "raku", "-e"),
            ("perl6 -e x", "perl6", "-e"),
            ("ghc -e x", "ghc", "-e"),
            ("ghci -e x", "ghci", "-e"),
            ("erl -noshell -eval x", "erl", "-eval"),
            ("werl -run m f", "werl", "-run"),
            ("erl -s m", "erl", "-s"),
            ("gdb -ex x", "gdb", "-ex"),
            ("gdb --iex=x", "gdb", "--iex"),
            ("gdb -ev x", "gdb", "-eval-command"),
            ("gdb --init-eval-command=x", "gdb", "--init-eval-command"),
            ("gdb --x=f", "gdb", "--x"),
            ("expect -c x", "expect", "-c"),
            ("swift -e x", "swift", "-e"),
            ("vim -c x", "vim", "-c"),
            ("nvim +x f", "nvim", "+"),
            ("emacs --eval x", "emacs", "--eval"),
            ("make -f -", "make", "-f"),
            ("make --ev=x", "make", "--eval"),
            ("gmake --makefile x", "gmake", "--makefile"),
            ("make -E x", "make", "-E"),
            ("make SHELL=/x all", "make", "SHELL="),
            ("make 'A=$(shell id)'", "make", "A="),
            ("make A!=id", "make", "A="),
            ("tar xf a.tar --to-command=x", "tar", "--to-command"),
            ("tar cfI a.tar x", "tar", "I"),
            ("tar --checkpoint=1 --checkpoint-action=exec=x -cf a b", "tar", "--checkpoint-action"),
            ("rg --pre ./p.sh needle", "rg", "--pre"),
            ("rg --pre=./p.sh needle", "rg", "--pre"),
        ],
        Input::Other,
    );
}

#[test]
fn code_in_operands() {
    check(
        &[
            ("awk '{print}' f", "awk", "program text"),
            ("awk -F : -v a=1 '{print}' f", "awk", "program text"),
            ("awk -- '{print}'", "awk", "program text"),
            ("gawk --so=x", "gawk", "--source"),
            ("mawk -f -", "mawk", "standard input"),
            ("nawk -e x", "nawk", "-e"),
            ("sed -n 1p f", "sed", "program text"),
            ("sed 'e id'", "sed", "program text"),
            ("gsed -e x", "gsed", "-e"),
            ("sed --expression=x", "sed", "--expression"),
            ("sed --e x", "sed", "--expression"),
            ("find . -exec id ;", "find", "-exec"),
            ("find -- . -ok id ;", "find", "-ok"),
            ("xargs git", "xargs", "command"),
            ("xargs -n 1 -I {} -- sh -c id", "xargs", "command"),
        ],
        Input::Other,
    );
}

#[test]
fn no_code() {
    check_none(
        &[
            "git log -n 3",
            "git commit -m python3",
            "git commit -m 'python3 -c x'",
            "echo python3 -c x",
            "nice git commit -m 'python3 -c x'",
            "python3 tool.py",
            "python3 tool.py -",
            "python3 -- tool.py -c x",
            "python3 -Xc tool.py",
            "python3 -X -c tool.py",
            "python3 -Wc tool.py",
            "python3",
            "node s.js",
            "deno run -A x.ts",
            "bun run dev",
            "ruby -W:no-experimental s.rb",
            "perl -w s.pl",
            "php -d display_errors=1 s.php",
            "groovy -encoding UTF-8 s.groovy",
            "awk -f p.awk data",
            "awk -fp.awk data",
            "gawk --file=p.awk data",
            "sed -f p.sed f",
            "sed -nf p.sed f",
            "find . -name exec",
            "find . -delete",
            "xargs",
            "xargs -n 1",
            "make all CC_FLAGS=1",
            "make -C dir all",
            "tar -xf FILE.tar",
            "tar xf a.tar",
            "vim +12 f",
            "rg --pre-glob x needle",
            "command -v python3",
            "bash s.sh python3 -c x",
            "bash -c 'git log'",
            "bash -c 'echo python3 -c x'",
            "bash -lc 'git status'",
            "npm install",
            "npx cowsay hi",
            "uv run tool.py",
            "sudo python3 tool.py",
            "sudo awk -F: -f p.awk data",
            "docker run python python3 -c x",
        ],
        Input::Other,
    );
    assert_eq!(find_inline_eval(&[], Input::Pipe), None);
}

#[test]
fn behind_wrappers_and_carriers() {
    check(
        &[
            ("nice timeout 9 python3 -c x", "python3", "-c"),
            ("env A=1 python3 -c x", "python3", "-c"),
            ("env -S 'python3 -c x'", "python3", "-c"),
            ("env '-Spython3 -c x'", "python3", "-c"),
            ("env -vSpython3 -c x", "python3", "-c"),
            ("env --split-string=python3 -c x", "python3", "-c"),
            ("su '-cpython3 -c x'", "python3", "-c"),
            ("sudo -u root A=1 python3 -c x", "python3", "-c"),
            ("doas perl -e x", "perl", "-e"),
            ("setsid perl -e x", "perl", "-e"),
            ("command python3 -c x", "python3", "-c"),
            ("builtin python3 -c x", "python3", "-c"),
            ("exec -a name python3 -c x", "python3", "-c"),
            ("env env env env env env python3 -c x", "python3", "-c"),
            ("./env python3 -c x", "python3", "-c"),
            ("bash -c '$0 \"$@\"' python3 -c x", "python3", "-c"),
            ("sh -c 'exec \"$0\" \"$@\"' python3 -c x", "python3", "-c"),
            ("bash -c 'x=$(id); python3 -c 1'", "python3", "-c"),
            ("bash -c 'git log; /usr/bin/python3 -c 1'", "python3", "-c"),
            ("bash -c 'bash -c \"sh -c \\\"perl -e 1\\\"\"'", "perl", "-e"),
            ("bash -c 'echo 1 | python3'", "python3", "standard input"),
            ("bash -lc 'python3 -c 1'", "python3", "-c"),
            ("fish -c 'cd /; pyth\"on3\" -c 1'", "fish", "-c"),
            ("/bin/sh -c 'python3${IFS}-c${IFS}1'", "python3", "-c"),
            ("eval 'python3 -c x'", "python3", "-c"),
            ("busybox awk '{print}'", "awk", "program text"),
            ("npx -c x", "npx", "-c"),
            ("npm exec -c x", "npm", "-c"),
            ("npm exec --call=x", "npm", "--call"),
            ("npx tsx -e x", "tsx", "-e"),
            ("npm exec -- node -e x", "node", "-e"),
            ("uv run python -c x", "python", "-c"),
            ("A=1 python3 -c x", "python3", "-c"),
            ("xargs python3 -c x", "xargs", "command"),
            ("sudo python3 -- python3 -c x", "python3", "-c"),
        ],
        Input::Other,
    );
}

#[test]
fn programs_from_a_pipe() {
    check(
        &[
            ("python3", "python3", "standard input"),
            ("python3 -u", "python3", "standard input"),
            ("node", "node", "standard input"),
            ("tclsh", "tclsh", "standard input"),
            ("tclsh -h", "tclsh", "standard input"),
            ("gdb prog", "gdb", "standard input"),
            ("sudo perl", "perl", "standard input"),
            ("env A=1 ruby", "ruby", "standard input"),
            ("expect -f -", "expect", "standard input"),
        ],
        Input::Pipe,
    );
    check_none(
        &[
            "head -n 3",
            "python3 tool.py",
            "awk -f p.awk",
            "sed -f p.sed",
            "bash",
            "php -f s.php",
            "node -- s.js",
        ],
        Input::Pipe,
    );
}

#[test]
fn texts_that_cannot_be_read() {
    let unreadable = "unreadable text";
    check(
        &[
            ("bash -c 'x=pyth;y=on3;$x$y -c 1'", "bash", unreadable),
            ("bash -lc 'x=pyth;y=on3;$x$y -c 1'", "bash", unreadable),
            ("/bin/sh -c '$x -c 1'", "sh", unreadable),
            ("bash -ec -- '$x -c 1'", "bash", unreadable),
            ("nice bash -c '$x -c 1'", "bash", unreadable),
            ("sudo bash -c '$x -c 1'", "bash", unreadable),
            ("sudo -u root su -l -c '$x -c 1' me", "su", unreadable),
            ("su '-c$x -c 1'", "su", unreadable),
            ("su '--command=$x -c 1'", "su", unreadable),
            ("flock /tmp/env -c '$x -c 1'", "env", unreadable),
            ("watch '$x -c 1'", "watch", unreadable),
            ("parallel '${x} -c 1' ::: a", "parallel", unreadable),
            ("env -S '${x} -c 1'", "env", unreadable),
            ("env '-vS${x} -c 1'", "env", unreadable),
            ("env '--split=${x} -c 1'", "env", unreadable),
            ("eval '$x -c 1'", "eval", unreadable),
            ("eval x=pyth 'y=on3;' '$x$y' -c 1", "eval", unreadable),
            ("trap '$x -c 1' EXIT", "trap", unreadable),
            ("trap 'python3 -c 1' EXIT", "python3", "-c"),
            ("eval 'echo 1 | python3'", "python3", "standard input"),
            ("bash -c 'eval \"\\$x -c 1\"'", "eval", unreadable),
            ("bash -c 'sh -c \"bash -c ls\"'", "bash", unreadable),
            ("fish -c ls", "fish", "-c"),
            ("fish -C ls", "fish", "-C"),
            ("tcsh -fc ls", "tcsh", "-c"),
            ("nu --commands ls", "nu", "--commands"),
            ("cmd /d/s/c ls", "cmd", "-c"),
            ("pwsh -Command ls", "pwsh", "-command"),
            ("pwsh -NoProfile -c ls", "pwsh", "-c"),
            ("pwsh.exe -Comm ls", "pwsh", "-command"),
            ("pwsh -EncodedCommand bHM=", "pwsh", "-encodedcommand"),
            ("pwsh -enc bHM=", "pwsh", "-encodedcommand"),
            ("pwsh -e bHM=", "pwsh", "-e"),
            ("pwsh \u{2013}c ls", "pwsh", "-c"),
            ("pwsh /c ls", "pwsh", "-c"),
            ("sudo pwsh -c ls", "pwsh", "-c"),
            ("powershell -ExecutionPolicy Bypass ls", "powershell", "program text"),
        ],
        Input::Other,
    );
    check_none(
        &[
            "bash -ec 'git log'",
            "sudo bash -c 'git log'",
            "su -c 'git log' me",
            "env -S 'git log'",
            "eval git log",
            "eval",
            "trap",
            "sudo grep -c '(a|b)' f",
            "fish s.fish",
            "parallel gzip {} ::: a",
            "watch -n 1 git log",
            "pwsh -NoProfile s.ps1",
            "pwsh -ExecutionPolicy Bypass -File s.ps1",
            "powershell -ep Bypass -File s.ps1 a",
            "cmd /?",
        ],
        Input::Other,
    );
}

#[test]
fn abbreviations_and_other_spellings() {
    check(
        &[
            ("env -S 'python3\\_-c\\_1'", "python3", "-c"),
            ("env '-Spython3\\_-c\\_1'", "python3", "-c"),
            ("env '-S\\_python3\\_-c\\_1'", "python3", "-c"),
            ("tar --checkpoint=1 --checkpoint-=exec=x -cf a b", "tar", "--checkpoint-action"),
            ("tar --checkpoint-act exec=x -cf a b", "tar", "--checkpoint-action"),
            ("tar --inf=x", "tar", "--info-script"),
            ("tar --new-=x", "tar", "--new-volume-script"),
            ("tar --rsh=x", "tar", "--rsh-command"),
            ("tar --rm=x", "tar", "--rmt-command"),
            ("tar --rmt-c x", "tar", "--rmt-command"),
            ("gawk -W source=x", "gawk", "--source"),
            ("gawk -Wsource=x", "gawk", "--source"),
            ("gawk -f p.awk -W so=x f", "gawk", "--source"),
            ("ruby -Kue x", "ruby", "-e"),
            ("ruby -T1e x", "ruby", "-e"),
            ("perl5.36-x86_64-linux-gnu -e x", "perl", "-e"),
            ("perl5.38.2 -e x", "perl", "-e"),
            ("vim.basic -c x", "vim", "-c"),
            ("vim.tiny -c x", "vim", "-c"),
            ("vim.nox +x f", "vim", "+"),
            ("editor -c x", "editor", "-c"),
            ("view -c x", "view", "-c"),
            ("rview -c x", "rview", "-c"),
            ("rvim --cmd x", "rvim", "--cmd"),
            ("evim -c x", "evim", "-c"),
            ("vimdiff -c x a b", "vimdiff", "-c"),
            ("ex -c x", "ex", "-c"),
            ("pdb -c x s.py", "pdb", "-c"),
            ("pdb3.11 --command=x s.py", "pdb3", "--command"),
            ("python3-dbg -c x", "python3", "-c"),
            ("python3.11-dbg -c x", "python3", "-c"),
            ("gdb-multiarch -ex x", "gdb-multiarch", "-ex"),
            ("jrunscript -e x", "jrunscript", "-e"),
            ("jrunscript -f -", "jrunscript", "standard input"),
            ("kotlin -e x", "kotlin", "-e"),
            ("kotlinc -script x.kts", "kotlinc", "-script"),
            ("crystal eval x", "crystal", "eval"),
            ("php -d auto_prepend_file=x s.php", "php", "auto_prepend_file="),
            ("php -dauto_append_file=x s.php", "php", "auto_append_file="),
            ("php --define=auto_prepend_file=x s.php", "php", "auto_prepend_file="),
            ("php -d 'a=1\nauto_prepend_file = x' s.php", "php", "auto_prepend_file="),
            ("sudo php -d auto_prepend_file=x s.php", "php", "auto_prepend_file="),
            ("prove -e x t", "prove", "-e"),
            ("prove --exec=x t", "prove", "--exec"),
            ("prove -lve x t", "prove", "-e"),
            ("fakeroot python3 -c x", "python3", "-c"),
            ("run0 python3 -c x", "python3", "-c"),
            ("sudoedit python3 -c x", "python3", "-c"),
            ("dbus-run-session -- python3 -c x", "python3", "-c"),
            ("ld.so /usr/bin/python3 -c x", "python3", "-c"),
            ("/lib64/ld-linux-x86-64.so.2 /usr/bin/python3 -c x", "python3", "-c"),
            ("i386 python3 -c x", "python3", "-c"),
            ("x86_64 -R python3 -c x", "python3", "-c"),
            ("ppc64 python3 -c x", "python3", "-c"),
        ],
        Input::Other,
    );
    check_none(
        &[
            "tar --checkpoint=10 -cf a b",
            "tar --newer=x -cf a b",
            "gawk -W lint -f p.awk f",
            "ruby -Ku s.rb",
            "vim.tiny f",
            "pdb3 s.py",
            "jrunscript -encoding utf8 s.js",
            "crystal run s.cr",
            "crystal s.cr eval",
            "php -d display_errors=auto_prepend_file s.php",
            "prove -l t",
            "fakeroot make all",
            "i386 git log",
        ],
        Input::Other,
    );
}

#[test]
fn scripts_that_are_standard_input() {
    let paths = [
        "-",
        "/dev/stdin",
        "/dev//stdin",
        "//dev/./stdin",
        "/dev/x/../stdin",
        "/dev/fd/0",
        "/proc/self/fd/0",
        "/proc/42/fd/0",
        "/proc/self/task/7/fd/0",
        "/proc/self/root/dev/stdin",
    ];
    for path in paths {
        for program in ["python3", "node", "perl", "ruby", "lua"] {
            check(&[(&format!("{program} {path}"), program, "standard input")], Input::Pipe);
        }
        if path != "-" {
            for shell in ["bash", "bash -l", "./bash", "nice bash", "fish"] {
                let name = if shell == "fish" { "fish" } else { "bash" };
                check(&[(&format!("{shell} {path}"), name, "standard input")], Input::Pipe);
            }
        }
    }
    check_none(&["python3 /dev/null", "python3 stdin", "perl /dev/fd/3", "bash s.sh"], Input::Pipe);
}

#[test]
fn huge_commands_take_linear_time() {
    let names = ["gdb", "groovy", "julia", "make", "node", "perl", "php", "vim"];
    for option in ["-z", "--zz", "-zzzzzzzz", "zz", "1.1.1.1", "a;b"] {
        // Nothing here is code, and every scan sees every word.
        let mut argv = vec!["sudo".to_owned()];
        argv.extend(names.map(str::to_owned));
        argv.extend(std::iter::repeat_n(option.to_owned(), 40_000));
        assert_eq!(find_inline_eval(&argv, Input::Other), None);
        argv.push("deno".to_owned());
        let many = InlineEval { program: "deno".to_owned(), form: "many interpreters".to_owned() };
        assert_eq!(find_inline_eval(&argv, Input::Other), Some(many));
    }
    let text = "a;".repeat(60_000);
    assert_eq!(find_inline_eval(&words(&format!("sudo tool {text}")), Input::Pipe), None);
    let unreadable = InlineEval { program: "bash".to_owned(), form: "unreadable text".to_owned() };
    assert_eq!(find_inline_eval(&words(&format!("bash -lc {text}")), Input::Pipe), Some(unreadable));
}

//! Every row of §5, with the misses listed at its end, and field cases F015, F024 and F025.

use super::*;

fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut quoted = false;
    for part in text.split('\'') {
        if quoted {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_ascii_whitespace().map(str::to_owned));
        }
        quoted = !quoted;
    }
    words
}

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
            ("fish -c 'cd /; pyth\"on3\" -c 1'", "python3", "-c"),
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
    assert_eq!(find_inline_eval(&words(&format!("fish -c {text}")), Input::Pipe), None);
}

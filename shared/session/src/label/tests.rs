use proptest::prelude::*;

use super::*;

#[test]
fn names_are_verb_and_target() {
    for (command, want) in [
        ("ls", "ls"),
        ("cargo build --release", "cargo build"),
        ("ls -la /tmp", "ls /tmp"),
        ("ls -la", "ls -la"),
        ("  tail\n-f   'my log.txt' x", "tail my log.txt"),
        (r#"grep "a \"b\"" file"#, r#"grep a "b""#),
        (r"cat a\ b", "cat a b"),
        ("echo ''", "echo "),
        ("echo 'open", "echo open"),
        ("", ""),
        (" \n ", ""),
        ("curl https://u:hunter2@h/", "curl https://u:***@h/"),
        ("export API_TOKEN=hunter2", "export API_TOKEN=***"),
        ("cat a\u{202e}\x1b[31mb", "cat a\u{fffd}[31mb"),
    ] {
        assert_eq!(name(command), want, "{command:?}");
    }
    let long = format!("cat /{}/end", "x".repeat(100));
    assert_eq!(name(&long), format!("cat /{}…{}/end", "x".repeat(23), "x".repeat(19)));
}

#[test]
fn long_texts_lose_their_middle() {
    for (text, max, want) in [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "ab…ef"),
        ("abcdef", 4, "ab…f"),
        ("abcdef", 1, "…"),
        ("abcdef", 0, ""),
        ("", 0, ""),
        ("äöü日本語", 5, "äö…本語"),
    ] {
        assert_eq!(middle(text, max), want);
    }
}

fn label(command: &str) -> String {
    redacted(command, 400)
}

#[test]
fn labels_are_one_short_line() {
    assert_eq!(redacted("for x in 1 2\ndo\n\techo $x\ndone\n", 120), "for x in 1 2 do echo $x done");
    assert_eq!(redacted("echo \x07\u{200b}x\u{202e}y", 120), "echo \u{fffd}xy");
    assert_eq!(redacted("echo 0123456789", 9), "echo…6789");
    let long = format!("echo {}", "word ".repeat(10_000));
    assert_eq!(redacted(&long, 12), "echo word w…");
    assert_eq!(redacted(&long, 0), "");
}

/// Every secret here is, or contains, `hunter2`.
#[test]
fn secrets_are_masked() {
    for (command, want) in [
        // Variables.
        ("TOKEN=hunter2 make", "TOKEN=*** make"),
        ("export DB_PASSWORD='hunter2 x' && run", "export DB_PASSWORD=*** && run"),
        ("AWS_SECRET_ACCESS_KEY=hunter2/+x= aws s3 ls", "AWS_SECRET_ACCESS_KEY=*** aws s3 ls"),
        (r#"PASS="hunter2 \" x" ls"#, "PASS=*** ls"),
        (r"PASSWD=a\ hunter2 ls", "PASSWD=*** ls"),
        (r"PASSWD='it'\''s hunter2' ls", "PASSWD=*** ls"),
        ("PGPASSWORD=hunter2,a;ls", "PGPASSWORD=***;ls"),
        ("STRIPE_KEY=hunter2 x", "STRIPE_KEY=*** x"),
        ("KEY=sk-hunter2-000", "KEY=***"),
        ("echo password = hunter2", "echo password = ***"),
        ("$env:API_TOKEN = \"hunter2\"", "$env:API_TOKEN = ***"),
        ("docker run -e 'DB_PASSWORD=my hunter2' img", "docker run -e 'DB_PASSWORD=***' img"),
        ("docker run -e DB_PASSWORD=hunter2 img", "docker run -e DB_PASSWORD=*** img"),
        ("bash -c 'cd x && TOKEN=hunter2 make'", "bash -c 'cd x && TOKEN=*** make'"),
        (r#"bash -c "cd x; PASSWORD=\"hunter2 y\" make""#, r#"bash -c "cd x; PASSWORD=*** make""#),
        ("psql \"host=h password=hunter2 dbname=x\"", "psql \"host=h password=*** dbname=x\""),
        ("psql \"host=h password='hunter2 x' dbname=x\"", "psql \"host=h password=*** dbname=x\""),
        // Options.
        ("x --password hunter2 -v", "x --password *** -v"),
        ("x --password=hunter2 -v", "x --password=*** -v"),
        ("x --api-key 'hunter2 y' -v", "x --api-key *** -v"),
        ("x --Auth-Token=\"hunter2\"", "x --Auth-Token=***"),
        ("x -password hunter2", "x -password ***"),
        ("x --password -hunter2", "x --password ***"),
        ("openssl rsa -passin pass:hunter2 -in k", "openssl rsa -passin *** -in k"),
        (
            "kubectl create secret generic s --from-literal=k=hunter2",
            "kubectl create secret generic s --from-literal=***",
        ),
        ("helm install --set auth.password=hunter2,b=c r", "helm install --set auth.password=*** r"),
        // Headers.
        ("curl -H 'Authorization: Bearer hunter2' u", "curl -H 'Authorization: ***' u"),
        ("curl -H \"X-Api-Key: hunter2 x\" u", "curl -H \"X-Api-Key: ***\" u"),
        ("curl -H Private-Token:hunter2 u", "curl -H Private-Token:*** u"),
        ("curl -H 'Cookie: a=hunter2; b=hunter2' u", "curl -H 'Cookie: ***' u"),
        ("echo Authorization: Bearer hunter2 x", "echo Authorization: *** x"),
        ("echo 'x: Bearer hunter2' y", "echo 'x: Bearer ***' y"),
        ("echo bearer hunter2", "echo bearer ***"),
        ("echo 'x: Basic aHVudGVyMg=='", "echo 'x: Basic ***'"),
        // JSON and forms.
        (r#"x '{"password": "hunter2", "user": "me"}'"#, r#"x '{"password": ***, "user": "me"}'"#),
        (r#"x '{"password":"hunter2 \" x","user":"me"}' y"#, r#"x '{"password":***,"user":"me"}' y"#),
        (r#"x "{\"token\": \"hunter2 x\", \"a\": 1}" y"#, r#"x "{\"token\": ***, \"a\": 1}" y"#),
        (r#"x '{"auth": {"u": "hunter2"}, "a": 1}'"#, r#"x '{"auth": ***, "a": 1}'"#),
        (r#"x '{"apiKey":hunter2,"a":1}'"#, r#"x '{"apiKey":***,"a":1}'"#),
        (r#"x '{"password":"$hunter2"}'"#, r#"x '{"password":***}'"#),
        ("cat <<E\n{\"password\": \"hunter2 x\", \"a\": 1}\nE", "cat <<E {\"password\": ***, \"a\": 1} E"),
        ("curl -d 'user=me&password=hunter2;x&a=1' u", "curl -d 'user=me&password=***&a=1' u"),
        ("curl 'https://h/?access_token=hunter2&a=1'", "curl 'https://h/?access_token=***&a=1'"),
        // URLs.
        ("git clone https://me:hunter2@h/r", "git clone https://me:***@h/r"),
        ("psql postgres://u:hunter2@h:5432/d", "psql postgres://u:***@h:5432/d"),
        ("psql 'postgres://u:hunt/er2@x@h/d'", "psql 'postgres://u:***@h/d'"),
        ("redis-cli -u redis://:hunter2@h", "redis-cli -u redis://:***@h"),
        ("git clone https://hunter2hunter2hunter2@h/r", "git clone https://***@h/r"),
        // Programs.
        ("mysql -uroot -phunter2 db", "mysql -uroot -p*** db"),
        ("sudo /usr/bin/mysqldump -p'hunter2 x' db", "sudo /usr/bin/mysqldump -p*** db"),
        ("bash -c 'mysql -phunter2 db'", "bash -c 'mysql -p*** db'"),
        ("curl -u me:hunter2 u", "curl -u me:*** u"),
        ("curl -sSu 'me:hunter2 x' u", "curl -sSu 'me:*** u"),
        ("curl -ume:hunter2 u", "curl -ume:*** u"),
        ("curl --user me:hunter2 https://h/login", "curl --user me:*** https://h/login"),
        ("curl https://h/login -u me:hunter2", "curl https://h/login -u me:***"),
        ("curl --proxy-user=me:hunter2 u", "curl --proxy-user=me:*** u"),
        ("curl -b 'sid=hunter2; b=1' u", "curl -b 'sid=*** u"),
        ("sshpass -p hunter2 ssh h", "sshpass -p *** ssh h"),
        ("docker login -u me -p hunter2 h", "docker login -u me -p *** h"),
        ("redis-cli -a hunter2 ping", "redis-cli -a *** ping"),
        ("smbclient -U me%hunter2 //h/s", "smbclient -U me%*** //h/s"),
        // Hidden characters do not hide a name.
        ("x --pass\u{200b}word hunter2", "x --password ***"),
        // Not closed.
        ("TOKEN='hunter2 x", "TOKEN=***"),
        ("x '{\"token\": \"hunter2", "x '{\"token\": ***"),
    ] {
        assert_eq!(label(command), want, "{command}");
    }
}

#[test]
fn tokens_are_known_by_their_looks() {
    for token in [
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "gho_16C7e42F292c",
        "github_pat_11ABCDEFG0abcdef_xyz",
        "glpat-abcDEF123456",
        "sk-demo-000",
        "sk-proj-abc123DEF456",
        "xoxb-123456-abcdef",
        "xoxp-123456-abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "npm_abcdefghijklmnopqrstuvwxyz0123456789",
        "-----BEGIN RSA PRIVATE KEY----- MIIE\nabc= -----END RSA PRIVATE KEY-----",
    ] {
        assert_eq!(label(&format!("x {token} y")), "x *** y", "{token}");
        assert_eq!(label(&format!("x 'a={token}' y")), "x 'a=***' y", "{token}");
    }
    assert_eq!(label("x -----BEGIN PRIVATE KEY-----\nMIIE"), "x ***");
}

#[test]
fn other_things_stay() {
    for command in [
        "ls -la /etc/passwd",
        "cat /run/secrets/db | wc -l",
        "git commit --author 'A B <a@b>' -m 'fix the token test'",
        "echo $TOKEN",
        "TOKEN=$TOKEN PASSWORD=\"${DB_PASSWORD}\" ./run",
        "x --password \"$PASSWORD\" --token=$T -v",
        "TOKEN=$(cat f) run",
        "TOKEN= run",
        "[ -n \"$TOKEN\" ] && echo yes",
        "docker login --password-stdin -u me registry.example",
        "x --token-file /run/token --password --verbose",
        "x --no-auth --max-tokens 100",
        "TOKENIZERS_PARALLELISM=false python train.py",
        "cd $PWD; PWD=/tmp ls",
        "ssh -p 22 git@host; git clone ssh://git@host/r",
        "docker run -p 80:80 -v /etc/passwd:/etc/passwd:ro -u 1:1 img",
        "mysql -h h -P 3306 -p db",
        "curl -u me -o out.txt http://localhost:8080/@scope/pkg",
        "npm_config_registry=https://r npm install",
        "pip install sk-learn scikit-learn",
        "cargo test -p session token",
        "echo basic usage of a compass=north",
        "make KEY",
        "sort --key=2",
        "grep -rn 'password' src",
    ] {
        assert_eq!(label(command), command);
    }
}

/// Pieces that matter to the reader of secrets.
fn command() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(
            &[
                "TOKEN=", "--password ", "--token=", "Cookie: ", "\"auth\": ", "Bearer ", "://", "@", ":", "{", "}", "'",
                "\"", "\\", "\\\"", "$", "$(", ")", " ", "\n", ";", "&", "|", "curl -u ", "mysql -p", "ghp_abcdef12",
                "eyJ", "-----BEGIN", "-----END", "-----", "é", "\u{202e}", "\x1b",
            ][..]
        )
        .prop_map(str::to_owned),
        1 => ".{0,3}",
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_command_has_a_label(command in command(), max in 0_usize..60) {
        for text in [redacted(&command, max), name(&command), middle(&command, max)] {
            prop_assert!(text.chars().count() <= max.max(2 * WORD_MAX + 1));
        }
        prop_assert!(redacted(&command, max).chars().count() <= max);
        prop_assert!(middle(&command, max).chars().count() <= max);
        prop_assert!(!label(&command).contains(|c: char| c.is_control() || is_hidden(c)));
    }

    /// Whatever commands stand around it, a word behind a telling name is gone.
    #[test]
    fn a_named_secret_never_shows(before in command(), after in command(), named in named()) {
        // An open quote before it would make the name a part of something else.
        let before = before.replace(['\'', '"', '\\'], "");
        let text = label(&format!("{before}; {named}{after}"));
        prop_assert!(!text.contains("Hunter2"), "{}", text);
    }
}

fn named() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &[
            "password=Hunter2",
            "password: Hunter2",
            "--password Hunter2",
            "{\"password\": \"Hunter2",
            "mysql -pHunter2",
            "curl -u me:Hunter2",
            "http://u:Hunter2@h",
            "Bearer Hunter2",
        ][..],
    )
}

#[test]
fn hostile_commands_are_bounded() {
    for piece in ["\"'", "://", "-eyJ", "token=\\\"", "a='\"", "{\"auth\":{", "-----BEGIN -----EN"] {
        let command = piece.repeat(10_000);
        assert!(redacted(&command, 120).chars().count() <= 120);
    }
}

//! What a sandboxed program reaches of the hosts that it may reach, and of all others.

mod edge;
mod images;
pub(crate) mod site;

use std::time::Duration;

use sepal::domain::AllowedHosts;
use sepal::net::{Egress, Guard, Reach};
use sepal::sandbox::{Bounds, Launch, ProgramEnd};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use self::site::Site;
use super::house::{self, House, in_time};

super::on_every_runtime!(
    a_listed_host_is_reached_and_its_bytes_are_told,
    everything_else_is_refused_in_words,
    a_private_address_is_the_operators_to_allow,
    there_is_no_way_around_the_proxy,
    a_program_keeps_its_own_streams_and_its_end,
    what_a_program_says_is_not_held_up_by_a_download,
    more_connections_than_it_may_have_wait,
    the_end_of_stdin_and_of_the_gateway_are_heard,
    the_bundled_server_may_reach_hosts_too,
);

/// What scripts ask the proxy with: the image has bash and nothing better.
const CLIENT: &str = r#"
dial() { exec 9<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; }
get() { dial; printf 'GET http://%s/ HTTP/1.1\r\nHost: elsewhere\r\nConnection: close\r\n\r\n' "$1" >&9; timeout 20 cat <&9; exec 9>&-; }
connect() { dial; printf 'CONNECT %s HTTP/1.1\r\n\r\n' "$1" >&9; read -r -t 20 line <&9; echo "$line"; }
"#;

/// That script, with those hosts.
fn script(house: &House, egress: &Egress, script: &str) -> Launch {
    Launch {
        egress: Some(egress.clone()),
        ..house.bash(1, &format!("{CLIENT}{script}"))
    }
}

fn egress(reach: Reach, hosts: &[&str]) -> Egress {
    let hosts = AllowedHosts::parse(hosts).unwrap();
    Egress::new(hosts, reach, Guard::default())
}

async fn a_listed_host_is_reached_and_its_bytes_are_told(house: House) {
    let site = Site::start().await;
    let host = format!("localhost:{}", site.port);
    let allowed = egress(Reach::Private, &[&format!("tcp://{host}")]);
    let run = script(
        &house,
        &allowed,
        &format!(
            "get {host}; connect {host}; printf 'GET /through HTTP/1.0\\r\\n\\r\\n' >&9; cat <&9"
        ),
    );
    let (said, ended) = house.run_launch(run).await;
    assert_eq!(ended, ProgramEnd::Exited(0), "{said}");
    assert!(
        said.contains(&format!("I am / of localhost:{}", site.port)),
        "{said}"
    );
    assert!(said.contains("HTTP/1.1 200 OK"), "{said}");
    assert!(said.contains("I am /through of nobody"), "{said}");
    let told = format!("sepal: reached {host} at 127.0.0.1: ");
    assert_eq!(said.matches(&told).count(), 2, "{said}");
    assert!(
        !said.contains(": 0 bytes sent") && !said.contains(" 0 received"),
        "{said}"
    );
    assert!(allowed.refusals.list().is_empty());
    house.close().await;
}

async fn everything_else_is_refused_in_words(house: House) {
    let site = Site::start().await;
    let (port, other) = (site.port, Site::start().await);
    let allowed = egress(Reach::Private, &[&format!("localhost:{port}")]);
    let run = script(
        &house,
        &allowed,
        &format!(
            "get evil.example; get evil.example; get localhost:{}; get 127.0.0.1:{port}
             get 2130706433:{port}; get '[::1]:{port}'; connect localhost:22; connect evil.example:443
             dial; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&9; cat <&9
             dial; printf 'nonsense\\r\\n\\r\\n' >&9; cat <&9; echo done",
            other.port
        ),
    );
    let (said, _) = house.run_launch(run).await;
    let words = format!(
        "Sepal: this server may not reach evil.example:80. It may reach: localhost:{port}. Who looks \
         after servers can allow it: add `evil.example` to the server's `network`."
    );
    assert_eq!(said.matches(&words).count(), 2, "{said}");
    assert!(
        said.contains(&format!("may not reach localhost:{}", other.port)),
        "{said}"
    );
    let literal = "it is an address, and hosts are reached by their names";
    assert!(said.matches(literal).count() >= 3, "{said}");
    assert_eq!(
        said.matches("HTTP/1.1 403 Forbidden\r\n").count(),
        8,
        "{said}"
    );
    assert!(said.contains("this is a proxy"), "{said}");
    assert!(said.contains("done"), "{said}");
    assert_eq!((site.visits(), other.visits()), (0, 0));
    let refused = allowed.refusals.list();
    let evil = refused
        .iter()
        .find(|it| it.host == "evil.example" && it.port == 80);
    let evil = evil.unwrap();
    assert_eq!(
        (evil.count, evil.entry.as_deref()),
        (2, Some("evil.example"))
    );
    let ssh = refused.iter().find(|it| it.port == 22).unwrap();
    assert_eq!(ssh.entry.as_deref(), Some("localhost:22"));
    let literal = refused.iter().find(|it| it.host == "127.0.0.1").unwrap();
    assert_eq!(literal.entry, None);
    house.close().await;
}

/// `localhost` stands for every name whose owner lets it lead to an address of ours.
async fn a_private_address_is_the_operators_to_allow(house: House) {
    let site = Site::start().await;
    let host = format!("localhost:{}", site.port);
    let asked = format!("get {host}");
    let tenants = egress(Reach::Public, &[&host]);
    let (said, _) = house.run_launch(script(&house, &tenants, &asked)).await;
    assert!(said.contains("403 Forbidden"), "{said}");
    assert!(said.contains("private or reserved address"), "{said}");
    assert_eq!(site.visits(), 0);
    let refused = tenants.refusals.list();
    assert_eq!(refused[0].entry, None, "no entry of a tenant would help");
    // An exception of the operator counts for everybody.
    let mut excepted = egress(Reach::Public, &[&host]);
    excepted.guard = Guard::new(vec![
        "127.0.0.0/8".parse().unwrap(),
        "::1/128".parse().unwrap(),
    ]);
    let (said, _) = house.run_launch(script(&house, &excepted, &asked)).await;
    assert!(said.contains("I am /"), "{said}");
    house.close().await;
}

async fn there_is_no_way_around_the_proxy(house: House) {
    let site = Site::start().await;
    let allowed = egress(Reach::Private, &["api.example.com"]);
    let run = script(
        &house,
        &allowed,
        &format!(
            "(exec 8<>/dev/tcp/127.0.0.1/{}) 2>/dev/null && echo connected
             (exec 8<>/dev/udp/8.8.8.8/53 && echo x >&8) 2>/dev/null && echo sent
             grep -c : /proc/net/dev; wc -l < /proc/net/route
             for pid in /proc/[0-9]*; do
               [ $pid = /proc/$$ ] && continue
               if tr '\\0' ' ' <$pid/cmdline | grep -q '^/sepal/mcp-server tunnel'; then
                 echo found
                 ls $pid/fd/ 2>/dev/null | grep -q . && echo sees the descriptors of $pid
                 (echo x > $pid/mem) 2>/dev/null && echo writes to $pid
               fi
               # What arrives in the tunnel ends it.
               for fd in 0 1 2 3 4 5 6 7 8 9; do
                 (echo x > $pid/fd/$fd) 2>/dev/null
               done
             done
             get api.example.org | grep -c 403; echo done",
            site.port
        ),
    );
    let (said, ended) = house.run_launch(run).await;
    let (said, told) = said.split_at(said.find("done\n").unwrap_or_default());
    let shims = said.matches("found\n").count();
    assert!((1..=2).contains(&shims), "{said}");
    assert_eq!(said.replace("found\n", ""), "1\n1\n1\n");
    assert!(told.contains("sepal: refused api.example.org:80"), "{told}");
    assert_eq!(ended, ProgramEnd::Exited(0));
    assert_eq!(site.visits(), 0);
    house.close().await;
}

async fn a_program_keeps_its_own_streams_and_its_end(house: House) {
    let allowed = egress(Reach::Public, &["api.example.com"]);
    let with = |words: &str| script(&house, &allowed, words);
    let (said, ended) = house
        .run_launch(with("echo out; echo err >&2; exit 7"))
        .await;
    assert_eq!(
        (said.as_str(), ended),
        ("out\nerr\n", ProgramEnd::Exited(7))
    );
    let (_, ended) = house.run_launch(with("kill -TERM $$")).await;
    assert_eq!(ended, ProgramEnd::Signalled(15));
    // All of it comes, though the program is gone before it is read.
    let (said, ended) = house
        .run_launch(with("head -c 4194304 /dev/zero | tr '\\0' x"))
        .await;
    assert_eq!((said.len(), ended), (4 << 20, ProgramEnd::Exited(0)));
    // What it leaves behind goes with it, and holds up nobody.
    let (said, ended) = house.run_launch(with("(sleep 600 &) ; echo left")).await;
    assert_eq!((said.as_str(), ended), ("left\n", ProgramEnd::Exited(0)));
    let mut lost = house.command(1, &["no-such-program"]);
    lost.egress = Some(allowed.clone());
    let (said, ended) = house.run_launch(lost).await;
    assert!(said.contains("no-such-program"), "{said}");
    assert_eq!(ended, ProgramEnd::Exited(1));
    house.close().await;
}

async fn what_a_program_says_is_not_held_up_by_a_download(house: House) {
    let site = Site::start().await;
    let host = format!("localhost:{}", site.port);
    let allowed = egress(Reach::Private, &[&host]);
    // Two downloads without end, one of which nobody reads.
    let run = script(
        &house,
        &allowed,
        &format!(
            "stream() {{ dial; printf 'GET http://{host}/endless HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' >&9; }}
             stream; exec 8<&9; stream; (cat <&9 >/dev/null) & read -r go; cat"
        ),
    );
    let mut running = house.start(run).await;
    let sent = vec![b'y'; 4 << 20];
    let said = async {
        running.stdin.write_all(b"go\n").await.unwrap();
        running.stdin.write_all(&sent).await.unwrap();
        running.stdin
    };
    let mut heard = vec![0; sent.len()];
    let hearing = running.stdout.read_exact(&mut heard);
    let (stdin, read) = in_time(async { tokio::join!(said, hearing) }).await;
    read.unwrap();
    assert!(heard == sent, "what comes back is what was sent");
    drop(stdin);
    running.life.kill().await;
    house.close().await;
}

async fn more_connections_than_it_may_have_wait(house: House) {
    let site = Site::start().await;
    let host = format!("localhost:{}", site.port);
    let allowed = egress(Reach::Private, &[&host]);
    let run = script(
        &house,
        &allowed,
        &format!(
            "n=0; while [ $n -lt 64 ]; do
               dial; exec {{held[$n]}}<&9; printf 'CONNECT {host} HTTP/1.1\\r\\n\\r\\n' >&9
               read -r -t 20 line <&9; n=$((n+1))
             done
             dial; printf 'CONNECT {host} HTTP/1.1\\r\\n\\r\\n' >&9
             read -r -t 1 line <&9 && echo early; echo full
             first=${{held[0]}}; exec {{first}}<&-
             read -r -t 20 line <&9; echo \"$line\""
        ),
    );
    let (said, _) = house.run_launch(run).await;
    assert!(said.contains("full\nHTTP/1.1 200 OK"), "{said}");
    assert!(!said.contains("early"), "{said}");
    assert_eq!(site.visits(), 65);
    house.close().await;
}

async fn the_end_of_stdin_and_of_the_gateway_are_heard(house: House) {
    let allowed = egress(Reach::Public, &["api.example.com"]);
    let mut running = house
        .start(script(&house, &allowed, "cat; echo over"))
        .await;
    running.stdin.write_all(b"one\n").await.unwrap();
    drop(running.stdin);
    let mut said = String::new();
    in_time(running.stdout.read_to_string(&mut said))
        .await
        .unwrap();
    assert_eq!(said, "one\nover\n");
    assert_eq!(in_time(running.life.ended()).await, ProgramEnd::Exited(0));
    // Whoever lets go of it has it ended, whatever it is busy with.
    let running = house.start(script(&house, &allowed, "sleep 600")).await;
    let ended = running.life.ended();
    drop(running);
    assert_eq!(in_time(ended).await, ProgramEnd::Killed);
    house.close().await;
}

async fn the_bundled_server_may_reach_hosts_too(house: House) {
    let site = Site::start().await;
    let host = format!("localhost:{}", site.port);
    let launch = Launch {
        egress: Some(egress(Reach::Private, &[&host])),
        bounds: Bounds {
            lifetime: Some(Duration::from_mins(5)),
            ..Bounds::default()
        },
        ..house.bundled(1)
    };
    let served = house::Served::connect(house.start(launch).await).await;
    let line = format!("{CLIENT} get {host}; get evil.example");
    let told = served
        .call("execute_command", serde_json::json!({ "command": line }))
        .await;
    assert!(told.contains("I am / of localhost"), "{told}");
    assert!(told.contains("may not reach evil.example:80"), "{told}");
    drop(served.client);
    assert_eq!(in_time(served.life.ended()).await, ProgramEnd::Exited(0));
    house.close().await;
}

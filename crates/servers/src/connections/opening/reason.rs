//! Guesses the likely reason of a failed start from the server's own output, for people. No decision depends
//! on it.

/// Words in servers' output, and their usual meaning here.
const SIGNS: [(&[&str], &str); 6] = [
    (
        &["sepal: refused "],
        "it wants a host that it may not reach; add the host to `network`, if it should have it",
    ),
    (
        &[
            "ENOTFOUND",
            "EAI_AGAIN",
            "name resolution",
            "getaddrinfo",
            "Network is unreachable",
            "ENETUNREACH",
            "Could not resolve",
        ],
        "it wants the network: name the hosts that it needs in `network` (a program that knows no \
         proxy reaches none), or use transport `http` for a remote server",
    ),
    (
        &[
            "exit code 127",
            "command not found",
            "No such file or directory",
            "execvp",
        ],
        "the command is not there; sandboxes see the system's programs, or those of the image",
    ),
    (
        &[
            "EROFS",
            "Read-only file system",
            "EACCES",
            "Permission denied",
        ],
        "it writes where it may not; tell it to write below `/tmp`, or give it the `workspace`",
    ),
    (
        &["memory", "OOM", "exit code 137"],
        "it needs more memory; raise `containerMemory`",
    ),
    (
        &[
            "API_KEY",
            "TOKEN",
            "environment variable",
            "401",
            "Unauthorized",
        ],
        "a key or variable is missing or wrong; set it in `env` or `headers`",
    ),
];

pub(crate) fn likely(text: &str, stderr: &[String]) -> Option<&'static str> {
    let holds = |word: &str| text.contains(word) || stderr.iter().any(|line| line.contains(word));
    SIGNS
        .iter()
        .find(|(words, _)| words.iter().any(|word| holds(word)))
        .map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::likely;

    #[test]
    fn the_usual_words_lead_to_a_remedy() {
        let check = |said: &str, word: &str| {
            let reason = likely("", &[said.to_owned()]).unwrap();
            assert!(reason.contains(word), "{said}: {reason}");
        };
        check("npm error code EAI_AGAIN", "network");
        check("Error: GITHUB_TOKEN is required", "env");
        check("sh: 1: uvx: command not found", "not there");
        assert_eq!(likely("it broke", &[]), None);
    }
}

//! The server's own stdin and stdout, moved without a thread.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::unix::pipe,
};

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Reads requests and writes answers.
///
/// Tokio's own streams move every byte in a thread, and rmcp's pipes fall back to those where
/// another user made them, as in every sandbox. A command that has taken every place for a process
/// leaves none for a thread, and then the answer about it would wait for the next request for ever.
/// What is no pipe is moved in threads all the same: somebody tries the server by hand.
pub(crate) fn stdio() -> (Input, Output) {
    let input = own(io::stdin()).and_then(pipe::Receiver::from_owned_fd);
    let output = own(io::stdout()).and_then(pipe::Sender::from_owned_fd);
    (
        input.map_or_else(|_| Box::new(tokio::io::stdin()) as Input, |it| Box::new(it)),
        output.map_or_else(
            |_| Box::new(tokio::io::stdout()) as Output,
            |it| Box::new(it),
        ),
    )
}

fn own(stream: impl AsFd) -> io::Result<OwnedFd> {
    stream.as_fd().try_clone_to_owned()
}

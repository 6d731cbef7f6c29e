//! Receive windows and path figures of a TCP socket.

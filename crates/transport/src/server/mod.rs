//! A file server with ranges and striping.

//! What a sender may send.

//! Certificates and roots.

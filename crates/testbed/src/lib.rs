//! Real programs in network namespaces over emulated paths.

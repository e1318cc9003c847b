//! What is found in pieces.

//! Whatever stands in a piece, loading returns.

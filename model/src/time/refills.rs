//! The refill algorithms (04, section 4).

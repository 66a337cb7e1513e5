//! System calls: their phases (01, sections 4 and 5).

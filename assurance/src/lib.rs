//! The kernel that ships, as a library on the host, in lock step with its executable
//! specification ([`sandglass_model`]).

//! Capabilities that travel with a message (02, section 8).

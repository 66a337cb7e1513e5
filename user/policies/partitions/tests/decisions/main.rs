//! Every decision beside an independent simulation that is obviously right: plain lists, searched from end to end.

mod cyclic;
mod hierarchy;
mod local;
mod periodic;
mod queue;
mod simulation;

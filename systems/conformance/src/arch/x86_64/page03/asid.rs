//! 03, sections 8.4 and 8.5: ASIDControl_MakePool and ASIDPool_Assign.

use crate::page03::asids;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("03/8.4/1-other-labels", asids::control_labels),
    check("03/8.4/2-truncated", asids::make_truncated),
    check("03/8.4/3-eight-pools", asids::make_all),
    check("03/8.4/4-and-5-untypeds-refused", asids::make_untypeds),
    check("03/8.4/6-destinations", asids::make_destinations),
    check("03/8.4/the-untyped-is-used-up", asids::make_effect),
    check(
        "03/8.4/by-send-and-in-a-first-phase",
        asids::make_without_answer,
    ),
    check("03/8.5/1-other-labels", asids::pool_labels),
    check("03/8.5/2-truncated", asids::assign_truncated),
    check("03/8.5/3-roots-refused", asids::assign_refused),
    check("03/8.5/512-identifiers", asids::assign_all),
    check("03/8.5/the-root-can-be-used", asids::assign_effect),
    check(
        "03/8.5/by-send-and-in-a-first-phase",
        asids::assign_without_answer,
    ),
];

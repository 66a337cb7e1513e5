//! 03, section 9.4: ASIDControl_MakePool and ASIDPool_Assign.

use crate::page03::asids;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("03/9.4/make-pool-1-other-labels", asids::control_labels),
    check("03/9.4/make-pool-2-truncated", asids::make_truncated),
    check("03/9.4/make-pool-3-128-pools", asids::make_all),
    check(
        "03/9.4/make-pool-4-and-5-untypeds-refused",
        asids::make_untypeds,
    ),
    check("03/9.4/make-pool-6-destinations", asids::make_destinations),
    check(
        "03/9.4/make-pool-the-untyped-is-used-up",
        asids::make_effect,
    ),
    check(
        "03/9.4/make-pool-by-send-and-in-a-first-phase",
        asids::make_without_answer,
    ),
    check("03/9.4/assign-1-other-labels", asids::pool_labels),
    check("03/9.4/assign-2-truncated", asids::assign_truncated),
    check("03/9.4/assign-3-roots-refused", asids::assign_refused),
    check("03/9.4/assign-512-identifiers", asids::assign_all),
    check("03/9.4/assign-the-root-can-be-used", asids::assign_effect),
    check(
        "03/9.4/assign-by-send-and-in-a-first-phase",
        asids::assign_without_answer,
    ),
];

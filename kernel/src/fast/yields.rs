//! Yield: the current thread gives up the rest of its slice.

use super::{Line, Outcome, Request};
use crate::mem::Ref;
use crate::object::{Core, SchedContext, Tcb};
use crate::time::{account, schedule};
use crate::{Kernel, View};

/// A Yield of somebody who shares the processor with no equal, in slices: the next slice begins.
pub struct Yield {
    payer: Ref<SchedContext>,
}

impl Line for Yield {
    #[inline(always)]
    fn plan(k: &View, core: &Core, caller: Ref<Tcb>, _: Request) -> Option<Yield> {
        let payer = core.context()?;
        let goes_on = payer.at(k).period() == 0 && schedule::is_alone(k, core, caller);
        goes_on.then_some(Yield { payer })
    }

    #[inline(always)]
    fn carry_out(self, k: &Kernel, core: &Core, _: Ref<Tcb>) -> Outcome {
        account::give_up(k, core, self.payer);
        schedule::settle_again(k, core, self.payer);
        Outcome::Stays
    }
}

//! Who may write, and accessors of fields that are replaced as a whole.

/// Who may change the state: the [`Kernel`](crate::Kernel), which is the only one; not its
/// [`View`](crate::View). What stands below the kernel's state, and cannot name it, asks for this in its
/// setters.
pub trait Owner {}

/// Declares a getter, and a setter if that is named, for each `Cell` field that is listed, with the field's
/// documentation. A setter wants the [`Kernel`](crate::Kernel), the right to change anything.
macro_rules! cells {
    ($($(#[$doc:meta])* $get:ident $(, $set:ident)?: $type:ty;)*) => {
        $(
            $(#[$doc])*
            pub fn $get(&self) -> $type {
                self.$get.get()
            }

            $(
                pub fn $set(&self, _: &Kernel, value: $type) {
                    self.$get.set(value)
                }
            )?
        )*
    };
}

//! Accessors of fields that are replaced as a whole.

/// Declares a getter and a setter for each `Cell` field that is listed, with the field's
/// documentation.
macro_rules! cells {
    ($($(#[$doc:meta])* $get:ident, $set:ident: $type:ty;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $get(&self) -> $type {
                self.$get.get()
            }

            #[inline(always)]
            pub fn $set(&self, value: $type) {
                self.$get.set(value)
            }
        )*
    };
}

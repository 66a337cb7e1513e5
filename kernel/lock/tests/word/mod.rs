//! The atomic word of a model checker.

/// Makes `$name` the word of the model checker at `$checker`.
#[macro_export]
macro_rules! word {
    ($name:ident, $checker:ident) => {
        struct $name($checker::sync::atomic::AtomicU32);

        impl sandglass_lock::Word for $name {
            fn load(&self, order: Ordering) -> u32 {
                self.0.load(order)
            }

            fn store(&self, value: u32, order: Ordering) {
                self.0.store(value, order);
            }

            fn increment(&self, order: Ordering) -> u32 {
                self.0.fetch_add(1, order)
            }

            fn pause() {
                $checker::thread::yield_now();
            }
        }
    };
}

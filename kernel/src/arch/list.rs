//! A list with room for `N` items, for what the boot counts.

/// Up to `N` items in order.
pub struct List<T, const N: usize> {
    items: [Option<T>; N],
    length: usize,
}

impl<T, const N: usize> List<T, N> {
    pub const fn new() -> Self {
        List {
            items: [const { None }; N],
            length: 0,
        }
    }

    /// Adds an item at the end. `Err` with the item if there is no room.
    pub fn push(&mut self, item: T) -> Result<(), T> {
        match self.items.get_mut(self.length) {
            Some(place) => {
                *place = Some(item);
                self.length += 1;
                Ok(())
            }
            None => Err(item),
        }
    }

    /// Takes the last item.
    pub fn pop(&mut self) -> Option<T> {
        let last = self.length.checked_sub(1)?;
        self.length = last;
        self.items.get_mut(last)?.take()
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().flatten()
    }

    /// Takes all items, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.length = 0;
        self.items.iter_mut().filter_map(Option::take)
    }
}

//! Bit sets of small numbers.

/// A bit set that stores only the words from its smallest to its largest number.
#[derive(Debug, Clone, Default)]
pub(crate) struct BitSet {
    /// The number of leading zero words that are not stored.
    from: usize,
    words: Vec<u64>,
}

const BITS: u32 = u64::BITS;

impl BitSet {
    /// The set of one number.
    pub(crate) fn one(number: u32) -> BitSet {
        let mut row = BitSet::default();
        row.insert(number);
        row
    }

    /// Whether the set contains a number.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.word((number / BITS) as usize) >> (number % BITS) & 1 == 1
    }

    /// Inserts a number.
    pub(crate) fn insert(&mut self, number: u32) {
        let at = (number / BITS) as usize;
        self.reach(at, at + 1);
        self.words[at - self.from] |= 1 << (number % BITS);
    }

    /// Removes a number.
    pub(crate) fn remove(&mut self, number: u32) {
        let at = ((number / BITS) as usize).checked_sub(self.from);
        if let Some(word) = at.and_then(|at| self.words.get_mut(at)) {
            *word &= !(1 << (number % BITS));
        }
    }

    /// Inserts all numbers of another set.
    pub(crate) fn add(&mut self, other: &BitSet) {
        if other.words.is_empty() {
            return;
        }
        self.reach(other.from, other.from + other.words.len());
        let mine = self.words[other.from - self.from..].iter_mut();
        mine.zip(&other.words).for_each(|(mine, other)| *mine |= other);
    }

    /// Whether the set contains all numbers of another one.
    pub(crate) fn holds(&self, other: &BitSet) -> bool {
        other.indexed().all(|(at, word)| word & !self.word(at) == 0)
    }

    /// The intersection.
    pub(crate) fn and(&self, other: &BitSet) -> BitSet {
        let (few, many) = if self.words.len() < other.words.len() { (self, other) } else { (other, self) };
        few.mapped(|at, word| word & many.word(at))
    }

    /// The difference.
    pub(crate) fn minus(&self, other: &BitSet) -> BitSet {
        self.mapped(|at, word| word & !other.word(at))
    }

    /// The smallest number.
    pub(crate) fn first(&self) -> Option<u32> {
        self.indexed().find(|(_, word)| *word != 0).map(|(at, word)| at as u32 * BITS + word.trailing_zeros())
    }

    /// The largest number.
    pub(crate) fn last(&self) -> Option<u32> {
        let (at, word) = self.words.iter().enumerate().rfind(|(_, word)| **word != 0)?;
        Some((self.from + at) as u32 * BITS + word.ilog2())
    }

    fn word(&self, at: usize) -> u64 {
        at.checked_sub(self.from).and_then(|at| self.words.get(at)).copied().unwrap_or(0)
    }

    fn indexed(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        (self.from..).zip(self.words.iter().copied())
    }

    /// Applies a function to each word and trims zero words.
    fn mapped(&self, of: impl Fn(usize, u64) -> u64) -> BitSet {
        let mut row = BitSet { from: self.from, words: Vec::new() };
        for (at, word) in self.indexed() {
            let word = of(at, word);
            if row.words.is_empty() {
                row.from = at;
            }
            if word != 0 || !row.words.is_empty() {
                row.words.push(word);
            }
        }
        while row.words.last() == Some(&0) {
            row.words.pop();
        }
        row
    }

    /// Extends the stored words to a range.
    fn reach(&mut self, from: usize, to: usize) {
        if self.words.is_empty() {
            self.from = from;
        }
        if from < self.from {
            self.words.splice(0..0, std::iter::repeat_n(0, self.from - from));
            self.from = from;
        }
        if to > self.from + self.words.len() {
            self.words.resize(to - self.from, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::BitSet;
    use crate::checks::testing::Dice;

    fn row(numbers: &BTreeSet<u32>) -> BitSet {
        let mut row = BitSet::default();
        numbers.iter().rev().for_each(|number| row.insert(*number));
        row
    }

    fn numbers(row: &BitSet) -> BTreeSet<u32> {
        (0..400).filter(|number| row.has(*number)).collect()
    }

    #[test]
    fn bit_sets_behave_like_sets() {
        let mut dice = Dice(3);
        let set = |dice: &mut Dice| -> BTreeSet<u32> {
            let (from, many) = (dice.below(300), dice.below(9));
            (0..many).map(|_| (from + dice.below(100)) as u32).collect()
        };
        for _ in 0..2_000 {
            let (one, other) = (set(&mut dice), set(&mut dice));
            let (a, b) = (row(&one), row(&other));
            assert_eq!(numbers(&a), one);
            assert_eq!((a.first(), a.last()), (one.first().copied(), one.last().copied()));
            assert_eq!(numbers(&a.and(&b)), &one & &other);
            assert_eq!(numbers(&a.minus(&b)), &one - &other);
            assert_eq!(a.holds(&b), one.is_superset(&other));
            let mut all = a.clone();
            all.add(&b);
            assert_eq!(numbers(&all), &one | &other);
            other.iter().for_each(|number| all.remove(*number));
            assert_eq!(numbers(&all), &one - &other);
            assert_eq!((all.first(), a.minus(&b).last()), (a.minus(&b).first(), all.last()));
        }
    }
}

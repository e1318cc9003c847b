//! A deterministic random generator: the same seed gives the same numbers on every machine and in every version.

#[derive(Debug, Clone)]
pub(super) struct SimulationRng {
    state: u64,
}

impl SimulationRng {
    /// Creates a generator from the seed, a name and a number.
    pub(super) fn new(seed: u64, of: &str, number: u64) -> SimulationRng {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in of.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let mut dice =
            SimulationRng { state: seed ^ hash.rotate_left(17) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
        dice.roll();
        dice
    }

    /// The next number (splitmix64, public domain).
    pub(super) fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `many`; 0 if `many` is 0.
    pub(super) fn below(&mut self, many: usize) -> usize {
        if many == 0 { 0 } else { (self.roll() % many as u64) as usize }
    }

    /// True with a probability of 1 in `many`.
    pub(super) fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    /// A random item; `None` if there is none.
    pub(super) fn pick<'t, T>(&mut self, among: &'t [T]) -> Option<&'t T> {
        let index = self.below(among.len());
        among.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::SimulationRng;

    #[test]
    fn the_same_seed_is_the_same_sequence() {
        let rolls = |seed, of, number| {
            let mut dice = SimulationRng::new(seed, of, number);
            [dice.roll(), dice.roll()]
        };
        assert_eq!(rolls(1, "a", 0), rolls(1, "a", 0));
        let others = [rolls(2, "a", 0), rolls(1, "b", 0), rolls(1, "a", 1)];
        assert!(others.iter().all(|other| *other != rolls(1, "a", 0)), "{others:?}");
        let mut dice = SimulationRng::new(1, "a", 0);
        let seen: std::collections::BTreeSet<usize> = (0..100).map(|_| dice.below(3)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((dice.below(0), dice.pick::<u8>(&[])), (0, None));
    }
}

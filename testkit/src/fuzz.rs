//! Random changes of inputs, the same on each machine. `CUEGATE_FUZZ=100` makes a hundred times as many.

/// Changes inputs at random.
#[derive(Debug)]
pub struct Mutator {
    state: u64,
    seeds: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

/// How many executions a test makes.
pub fn executions(usual: u64) -> u64 {
    let times = std::env::var("CUEGATE_FUZZ").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    usual * times
}

impl Mutator {
    /// Changes these inputs, also by inserting these words.
    pub fn new(seeds: &[&[u8]], words: &[&[u8]]) -> Mutator {
        let owned = |texts: &[&[u8]]| texts.iter().map(|text| text.to_vec()).collect();
        Mutator { state: 0x9e37_79b9_7f4a_7c15, seeds: owned(seeds), words: owned(words) }
    }

    /// A random number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % end.max(1) as u64) as usize
    }

    /// The next input: one of the seeds with one to eight changes.
    pub fn input(&mut self) -> Vec<u8> {
        let at = self.below(self.seeds.len());
        let mut input = self.seeds[at].clone();
        for _ in 0..=self.below(8) {
            self.change(&mut input);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let to = at + self.below(input.len() - at + 1);
        match self.below(7) {
            0 => input.truncate(at),
            1 => drop(input.drain(at..to)),
            2 => {
                let word = self.below(self.words.len());
                let word = self.words[word].clone();
                input.splice(at..at, word);
            }
            3 => {
                let byte = u8::try_from(self.below(256)).unwrap_or_default();
                input.insert(at, byte);
            }
            4 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.state.trailing_zeros().min(7);
                }
            }
            5 => {
                // Bounded, so that no input grows without end.
                let piece = input[at..to.min(at + 64)].to_vec();
                input.splice(at..at, piece);
            }
            _ => {
                let other = self.below(self.seeds.len());
                let other = self.seeds[other].clone();
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend(other[from..].iter().take(4096));
            }
        }
    }
}

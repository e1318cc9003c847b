//! Strongly connected components of steps.

/// The strongly connected components of a flow, each before those that lead to it.
#[derive(Debug)]
pub(crate) struct Components {
    /// The steps, grouped by component; within one, mostly before those that lead to them.
    pub(crate) steps: Vec<u32>,
    /// The start of each component in `steps`, and the end of the last one.
    pub(crate) starts: Vec<usize>,
    /// By step: its component; [`NONE`] for unreachable steps.
    pub(crate) of: Vec<u32>,
}

/// No component.
pub(crate) const NONE: u32 = u32::MAX;

/// Tarjan's index and low link of each step.
struct Numbers {
    next: u32,
    of: Vec<u32>,
    low: Vec<u32>,
}

impl Components {
    /// The components that are reachable from some steps, by Tarjan's algorithm. `out`: the ways out of each step.
    /// `to`: the target of a way, if the way counts.
    pub(crate) fn of<W>(
        out: &[Vec<W>],
        to: impl Fn(&W) -> Option<u32>,
        roots: impl IntoIterator<Item = u32>,
    ) -> Components {
        let mut found = Components { steps: Vec::new(), starts: vec![0], of: vec![NONE; out.len()] };
        let mut numbers = Numbers { next: 0, of: vec![NONE; out.len()], low: vec![0; out.len()] };
        for root in roots {
            if numbers.of[root as usize] == NONE {
                found.follow(out, &to, root, &mut numbers);
            }
        }
        found
    }

    /// Visits a step and its successors. It uses an explicit stack, because flows can be deep.
    fn follow<W>(
        &mut self,
        out: &[Vec<W>],
        to: &impl Fn(&W) -> Option<u32>,
        root: u32,
        Numbers { next: next_number, of: number, low }: &mut Numbers,
    ) {
        let (mut pending, mut open) = (Vec::new(), vec![(root, 0)]);
        while let Some((step, next)) = open.last_mut() {
            let at = *step as usize;
            if *next == 0 && number[at] == NONE {
                (number[at], low[at]) = (*next_number, *next_number);
                *next_number += 1;
                pending.push(*step);
            }
            if let Some(way) = out[at].get(*next) {
                *next += 1;
                let Some(to) = to(way) else { continue };
                if number[to as usize] == NONE {
                    open.push((to, 0));
                } else if self.of[to as usize] == NONE {
                    low[at] = low[at].min(number[to as usize]);
                }
                continue;
            }
            let (step, mine) = (*step, low[at]);
            open.pop();
            if let Some((above, _)) = open.last() {
                low[*above as usize] = low[*above as usize].min(mine);
            }
            if mine == number[at] {
                let from = pending.iter().rposition(|known| *known == step).unwrap_or(0);
                let component = self.starts.len() as u32 - 1;
                // The last visited step comes first.
                for member in pending.drain(from..).rev() {
                    self.of[member as usize] = component;
                    self.steps.push(member);
                }
                self.starts.push(self.steps.len());
            }
        }
    }

    /// The steps of each component.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.starts.windows(2).map(|ends| &self.steps[ends[0]..ends[1]])
    }
}

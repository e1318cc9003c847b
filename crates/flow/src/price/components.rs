//! Which steps lead to each other, round and round.

use super::graph::Ways;

/// The components of a flow: sets of steps that all lead to each other, each before those that lead to it.
#[derive(Debug)]
pub(super) struct Components {
    /// The steps, each component's one after the other; within one mostly before those that lead to them.
    pub(super) steps: Vec<u32>,
    /// Where each component begins in `steps`, and where the last one ends.
    pub(super) starts: Vec<usize>,
    /// By step: its component; [`NONE`] where no walk comes.
    pub(super) of: Vec<u32>,
}

/// No component.
pub(super) const NONE: u32 = u32::MAX;

impl Components {
    /// Of what can be come to from an entry, by Tarjan's algorithm. Flows are as deep as they are large, so that it keeps a
    /// stack of its own.
    pub(super) fn of(ways: &Ways, entry: u32) -> Components {
        let count = ways.out.len();
        let mut found = Components { steps: Vec::new(), starts: vec![0], of: vec![NONE; count] };
        let (mut number, mut low) = (vec![NONE; count], vec![0; count]);
        let (mut next_number, mut pending, mut open) = (0, Vec::new(), vec![(entry, 0)]);
        while let Some((step, next)) = open.last_mut() {
            let at = *step as usize;
            if *next == 0 && number[at] == NONE {
                (number[at], low[at]) = (next_number, next_number);
                next_number += 1;
                pending.push(*step);
            }
            if let Some(way) = ways.out[at].get(*next) {
                *next += 1;
                let to = way.to as usize;
                if number[to] == NONE {
                    open.push((way.to, 0));
                } else if found.of[to] == NONE {
                    low[at] = low[at].min(number[to]);
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
                let component = found.starts.len() as u32 - 1;
                // What was come to last stands first.
                for member in pending.drain(from..).rev() {
                    found.of[member as usize] = component;
                    found.steps.push(member);
                }
                found.starts.push(found.steps.len());
            }
        }
        found
    }

    /// The steps of each component.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.starts.windows(2).map(|ends| &self.steps[ends[0]..ends[1]])
    }
}

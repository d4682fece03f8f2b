//! Random conversations with tools, compacted by plans, by given summaries and by a summarizer, on a store and on a model.
//!
//! What a plan contains is checked from the view alone ([`plan`]). A commit must do what the model does, or be refused for
//! a true reason ([`world`]). The view of every branch must be valid for every provider.

mod count;
mod op;
mod plan;
mod world;

use crate::common::random;
use op::{Op, op};
use proptest::prelude::*;
use talktree::Result;
use world::World;

fn check(mut world: World, ops: &[Op], is_cleared_at_half: bool) -> Result<()> {
    for (step, op) in ops.iter().enumerate() {
        world.run(op)?;
        world.compare()?;
        if step % 12 == 11 {
            world.compare_all()?;
        }
        if is_cleared_at_half && step == ops.len() / 2 {
            world.run(&Op::Clear)?;
        }
    }
    world.compare_all()?;
    world.run(&Op::Reopen)?;
    world.compare_all()?;
    world.verify()
}

#[test]
fn random_operations_leave_the_store_equal_to_the_model() -> std::result::Result<(), String> {
    let strategy = (prop::collection::vec(op(), 10..70), prop::bool::weighted(0.1));
    random::check_all(random::cases(40), &strategy, |(ops, is_cleared_at_half)| {
        check(World::in_file()?, &ops, is_cleared_at_half)
    })
}

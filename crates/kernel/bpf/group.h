/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* A weighted group under one joint window with whole numbers: crates/congestion/src/joint.rs is the same with its reasons. */
#pragma once

#include "members.h"

#define MOST_LOST 32

/* Whether a member wants less than its part. */
static __always_inline void judge(struct group *group, __u64 place, __u64 total_q10)
{
	struct member *member = member_at(group, place);
	__u64 measure = KEPT(member->measure), claim = KEPT(member->claim_q10);
	__u64 is_content = is_less(KEPT(member->claim_q28), KEPT(group->level_q28)) * is_less(claim, total_q10) * KEPT(member->is_heard);
	__u64 was_content = KEPT(member->is_content);

	KEPT(group->claimed_q10) += claim * is_content - claim * was_content;
	KEPT(group->open) += measure * was_content - measure * is_content;
	KEPT(member->is_content) = is_content;
}

/* The bounds hold for this member as well. They are only ever drawn closer, until all are looked at. */
static __always_inline void bind(struct bounds *bounds, const struct member *member)
{
	__u64 claim_q28 = KEPT(member->claim_q28), is_content = KEPT(member->is_content), is_open = KEPT(member->is_heard) * (1 - is_content);

	KEPT(bounds->until_ns) = least(KEPT(bounds->until_ns), KEPT(member->same_until_ns));
	KEPT(bounds->until_delivered) = least(KEPT(bounds->until_delivered), KEPT(member->same_until_delivered));
	KEPT(bounds->least_open_q28) = least(KEPT(bounds->least_open_q28), claim_q28 * is_open | -(1 - is_open));
	KEPT(bounds->most_content_q28) = most(KEPT(bounds->most_content_q28), claim_q28 * is_content);
}

/* Several at a time, with the lock held: few enough for others to wait. Most of them add what they did. */
#define BLOCK 4

static long look_at_block(__u32 block, struct walk *walk)
{
	struct group *group = walk->group;
	__u64 now_ns = walk->now_ns;

	bpf_spin_lock(&group->lock);
	_Pragma("clang loop unroll(disable)")
	for (__u32 j = 0; j < BLOCK; j++) {
		__u64 place = BLOCK * block + j;
		struct member *member = member_at(group, place);

		if (walk->is_exact || now_ns >= KEPT(member->same_until_ns) || KEPT(group->delivered) > KEPT(member->same_until_delivered))
			look(group, place, now_ns);
		judge(group, place, walk->total_q20 >> 10);
		bind(&group->bounds, member);
	}
	bpf_spin_unlock(&group->lock);
	return 0;
}

/* The joint window is as it was before: what is found out of one member does not change what is found out of the next. */
static __always_inline void look_at_all(struct walk *walk)
{
	struct group *group = walk->group;

	KEPT(group->looked_ns) = walk->now_ns;
	walk->total_q20 = total_q20(group);
	bpf_spin_lock(&group->lock);
	group->bounds.until_ns = group->bounds.until_delivered = group->bounds.least_open_q28 = ~0ULL;
	group->bounds.most_content_q28 = 0;
	bpf_spin_unlock(&group->lock);
	bpf_loop((KEPT(group->top) + BLOCK - 1) / BLOCK, look_at_block, walk, 0);
}

/* Whether members have to be looked at. Those that recover are when they are heard of, but in a small group. */
static __always_inline int is_due(struct group *group, __u64 now_ns)
{
	struct bounds *bounds = &group->bounds;
	__u64 level_q28 = KEPT(group->level_q28), until_ns = KEPT(bounds->until_ns);
	__u64 every_ns = until_ns ? LOOKS_EVERY_NS : LOOKS_IN_SLOW_START_NS;
	int has_changed = now_ns >= until_ns || level_q28 > KEPT(bounds->least_open_q28) || level_q28 <= KEPT(bounds->most_content_q28);

	if (KEPT(group->top) <= SMALL_GROUP)
		return has_changed || KEPT(group->delivered) > KEPT(bounds->until_delivered);
	return has_changed && above(now_ns, KEPT(group->looked_ns)) >= every_ns * KEPT(group->count);
}

/* The level at which parts and what the content ones want are the joint window. Answers whether that is what holds members back. */
static __always_inline __u64 settle(struct group *group, __u64 place)
{
	__u64 total_q10 = total_q20(group) >> 10, all = KEPT(group->all), claimed, open, level_q28;
	struct member *own = member_at(group, place);

	judge(group, place, total_q10);
	bind(&group->bounds, own);
	claimed = least(KEPT(group->claimed_q10), LARGEST_TOTAL_Q20 >> 10);
	open = KEPT(group->open);
	if (!all) {
		level_q28 = 0;
	} else if (open == all) {
		level_q28 = (total_q10 << 28) / all;
	} else {
		if (open)
			level_q28 = (above(total_q10, claimed) << 28) / open;
		else
			level_q28 = above(KEPT(group->bounds.most_content_q28) + (above(total_q10, claimed) << 28) / all,
					  (above(claimed, total_q10) << 28) / all);
		level_q28 = most(level_q28, (total_q10 << 28) / all);
	}
	KEPT(group->level_q28) = level_q28;
	return open || claimed >= total_q10;
}

/* A member's part at the level, at most all, which bounds its cap. What it can use at the most is another then: it is to be looked at. */
static __always_inline __u64 own_part_q10(struct group *group, __u64 place)
{
	struct member *own = member_at(group, place);
	__u64 total_q10 = total_q20(group) >> 10, level_q28 = KEPT(group->level_q28), measure = KEPT(own->measure), part = total_q10;

	/* Measures are below 2^38. With a higher level the product might not fit. */
	if (level_q28 >> 25 == 0 || measure < (total_q10 << 28) / level_q28)
		part = least(level_q28 * measure >> 28, total_q10);
	if (KEPT(own->cap_q10) > 2 * part) {
		KEPT(own->cap_q10) = 2 * part;
		KEPT(own->same_until_ns) = 0;
		KEPT(group->bounds.until_ns) = 0;
	}
	return part;
}

/* So many turns are read at a time: the verifier follows such a loop step by step. */
#define TURNS 16
/* Turns that differ by less are alike: the first place goes first. */
#define ALIKE_Q50 (1ULL << 40)

/* Whose turn of these it is, if it is so more than of those before. No lock is held: who changes one meanwhile makes another one lose, no more. */
static long find_turn(__u32 block, struct walk *walk)
{
	struct group *group = walk->group;
	__u64 turned = KEPT(group->turned_q50), turn_q50 = walk->turn_q50, place = walk->place;

	_Pragma("clang loop unroll(disable)")
	for (__u32 j = 0; j < TURNS; j++) {
		struct turn *turn = turn_at(group, TURNS * block + j);
		__u64 usable = KEPT(turn->usable_q20), its_q50 = KEPT(turn->turn_q50) + usable * turned;
		__u64 is_next = is_less(turn_q50 + ALIKE_Q50, its_q50) * is_less(0, usable);

		/* Without a branch, for the verifier. */
		asm volatile("%0 = -%0" : "+r"(is_next));
		turn_q50 ^= (turn_q50 ^ its_q50) & is_next;
		place ^= (place ^ (TURNS * block + j)) & is_next;
	}
	walk->turn_q50 = turn_q50;
	walk->place = place;
	return 0;
}

/* A lost packet: of the own flow, or else of the one whose turn it is. After a time-out a flow takes a window of them. */
static long lose_one(__u32 number, struct walk *walk)
{
	struct group *group = walk->group;
	struct member *member;

	if (!walk->left_q20)
		return 1;
	walk->place = walk->own;
	if (!walk->is_own) {
		walk->place = MOST_MEMBERS;
		walk->turn_q50 = -(1ULL << 62);
		bpf_spin_lock(&group->lock);
		KEPT(group->turned_q50) += (1ULL << 50) / walk->total_q20;
		bpf_spin_unlock(&group->lock);
		bpf_loop((KEPT(group->top) + TURNS - 1) / TURNS, find_turn, walk, 0);
	}
	if (walk->place >= MOST_MEMBERS)
		return 1;
	bpf_spin_lock(&group->lock);
	if (!walk->is_own) {
		KEPT(turn_at(group, walk->place)->turn_q50) -= 1ULL << 50;
		/* Who lends most of its flow away loses nothing by what others do with that. */
		if (KEPT(member_at(group, walk->place)->counts_q20) < ONE_Q20)
			walk->place = walk->own;
	}
	member = member_at(group, walk->place);
	take_out(group, walk->place);
	catch_up(group, member);
	walk->left_q20 = above(walk->left_q20, walk->has_timed_out ? member->cwnd_q20 : ONE_Q20);
	/* What was sent before it was halved does not halve it again. */
	if (KEPT(group->delivered) > KEPT(member->recovered_at) && walk->sent_ns >= KEPT(member->reduced_ns)) {
		KEPT(member->ssthresh_q20) = most((KEPT(member->cwnd_q20) * walk->full_q20) >> 21, 2 * ONE_Q20);
		KEPT(member->cwnd_q20) = KEPT(member->ssthresh_q20);
		KEPT(member->recovered_at) = KEPT(group->delivered) + walk->in_flight;
		KEPT(member->reduced_ns) = walk->now_ns;
	}
	put_in(group, walk->place, walk->now_ns);
	judge(group, walk->place, walk->total_q20 >> 10);
	bind(&group->bounds, member);
	bpf_spin_unlock(&group->lock);
	return 0;
}

/* All lost packets are the own flow's, or else each is the next one's in turn. `walk` says which, and when they were sent. */
static __always_inline void lose(struct walk *walk, const struct heard *heard)
{
	struct group *group = walk->group;
	__u64 gone = heard->has_timed_out ? heard->used : 0;

	walk->total_q20 = most(total_q20(group), ONE_Q20);
	walk->in_flight = KEPT(group->in_flight);
	walk->full_q20 = least(((walk->in_flight + gone + KEPT(group->counted)) << 36) / (walk->total_q20 >> 4), ONE_Q20);
	walk->left_q20 = (__u64)heard->lost << 20;
	walk->has_timed_out = heard->has_timed_out;
	bpf_loop(MOST_LOST, lose_one, walk, 0);
}

/* After a member has come or gone. */
static __always_inline void settle_all(struct walk *walk, __u32 place)
{
	struct group *group = walk->group;

	look_at_all(walk);
	bpf_spin_lock(&group->lock);
	settle(group, place);
	own_part_q10(group, place);
	bpf_spin_unlock(&group->lock);
}

/* A connection joins: its place, or MOST_MEMBERS where there is none. One that has sent on its own brings its window and threshold; 0 is a window
   that begins. */
static __always_inline __u32 group_join(struct group *group, __u32 weight_q16, __u32 cwnd, __u32 ssthresh, __u64 now_ns)
{
	struct walk walk = { .group = group, .now_ns = now_ns };
	struct member *member;
	__u32 place;

	bpf_spin_lock(&group->lock);
	KEPT(group->place) = MOST_MEMBERS;
	EACH_PLACE(i) {
		__u64 candidate = MOST_MEMBERS - 1 - i, is_taken = KEPT(group->members[candidate].is_taken);

		KEPT(group->place) = KEPT(group->place) * is_taken + candidate * (1 - is_taken);
	}
	place = KEPT(group->place);
	if (place >= MOST_MEMBERS) {
		bpf_spin_unlock(&group->lock);
		return MOST_MEMBERS;
	}
	if (!group->delivered) {
		group->delivered = 1;
		group->initial = INITIAL_WINDOW;
	}
	member = member_at(group, place);
	if (!cwnd)
		cwnd = group->initial;
	take_out(group, place);
	member->is_taken = 1;
	member->weight_q16 = weight_q16;
	member->seen_ns = now_ns;
	member->srtt_us = 0;
	member->used = 0;
	member->is_limited = 1;
	member->cap_q10 = least((__u64)cwnd << 10, LARGEST_Q20 >> 10);
	member->cwnd_q20 = least((__u64)cwnd << 20, LARGEST_Q20);
	member->ssthresh_q20 = least((__u64)ssthresh << 20, LARGEST_Q20);
	member->recovered_at = 0;
	member->reduced_ns = 0;
	member->used_q20 = ONE_Q20;
	KEPT(turn_at(group, place)->turn_q50) = 0;
	put_in(group, place, now_ns);
	KEPT(group->top) = most(KEPT(group->top), place + 1);
	KEPT(group->count)++;
	bpf_spin_unlock(&group->lock);
	settle_all(&walk, place);
	return place;
}

static __always_inline void group_leave(struct group *group, __u32 place, __u64 now_ns)
{
	struct walk walk = { .group = group, .now_ns = now_ns };
	struct member *member;

	if (place >= MOST_MEMBERS)
		return;
	member = member_at(group, place);
	bpf_spin_lock(&group->lock);
	KEPT(group->count) -= member->is_taken;
	take_out(group, place);
	member->is_taken = 0;
	put_in(group, place, now_ns);
	KEPT(group->top) = 0;
	EACH_PLACE(i)
		KEPT(group->top) = most(KEPT(group->top), (i + 1) * KEPT(group->members[i].is_taken));
	bpf_spin_unlock(&group->lock);
	settle_all(&walk, place);
}

/* The member used as much of its flow as if it had used all of it for some time: for a round trip at the most. Its window was what held it
   back, or what was delivered is a part of the flow's. */
static __always_inline void note_use(const struct heard *heard, struct member *member, __u64 delivered)
{
	__u64 silence_ns = above(heard->now_ns, member->seen_ns), srtt_ns = least(heard->srtt_us, LONGEST_US) * 1000;
	__u64 left_q20 = KEPT(member->used_q20) * counting_q30(above(COUNTS_FOR_NS, silence_ns)) >> 30;
	__u64 span_ns = heard->is_limited ? least(silence_ns, srtt_ns)
					  : (srtt_ns * delivered << 10) / most(member->cwnd_q20 >> 10, 1 << 10);

	KEPT(member->used_q20) = least(left_q20 + (counting_q30(span_ns) >> 10), ONE_Q20);
}

/* What was delivered lets all flows grow, each by its part of the joint window, when it is looked at next. */
static __always_inline void deliver(struct group *group, __u64 delivered, __u64 is_full)
{
	__u64 total = most(total_q20(group), ONE_Q20);

	KEPT(group->delivered) += delivered;
	KEPT(group->step) = delivered;
	KEPT(group->step_q30) = (delivered << 45) / (total >> 5) * is_full;
	KEPT(group->grown_q30) += KEPT(group->step_q30);
}

/* What a member heard, before it counts for anything. */
static __always_inline void take_note(struct group *group, struct member *member, const struct heard *heard, __u64 delivered)
{
	__u64 is_still_heard = is_heard(member, heard->now_ns), counts = least(lent_q20(member, heard->now_ns), ONE_Q20);

	if (!is_still_heard)
		KEPT(member->cap_q10) = least(KEPT(member->cap_q10), (__u64)group->initial << 10);
	/* Of which next to nothing counts, that one begins again with the initial window. */
	if (usable_q20(member, counts, claim(member) * is_still_heard) < (__u64)group->initial << 20)
		KEPT(member->cwnd_q20) = least(KEPT(member->cwnd_q20), (__u64)group->initial << 20);
	note_use(heard, member, delivered);
	member->seen_ns = heard->now_ns;
	member->weight_q16 = heard->weight_q16;
	member->srtt_us = least(heard->srtt_us, LONGEST_US);
	member->used = least(heard->used, 1 << 19);
	member->is_limited = heard->is_limited;
	KEPT(member->cap_q10) += delivered << 10;
	if (!heard->is_limited)
		KEPT(member->cap_q10) = least(KEPT(member->cap_q10), most(2ULL * KEPT(member->used), group->initial) << 10);
}

/* What a member is answered, with the lock held. */
static __always_inline void answer(struct group *group, __u64 place, struct heard *heard)
{
	struct member *member = member_at(group, place);
	__u64 part, initial_q10;

	settle(group, place);
	part = own_part_q10(group, place);
	/* What a flow begins with is always its member's, as far as that uses little of it. */
	initial_q10 = least(KEPT(member->cwnd_q20) >> 10, (__u64)group->initial << 10) * is_less(KEPT(member->counts_q20), ONE_Q20);
	heard->window = most((least(KEPT(member->cap_q10), most(part, initial_q10)) + 512) >> 10, 1);
	heard->total_q20 = total_q20(group);
}

static __always_inline void group_heard(struct group *group, __u32 place, struct heard *heard)
{
	__u64 delivered = least(heard->delivered, 1 << 15), now_ns = heard->now_ns, part, is_full;
	struct walk walk = { .group = group, .now_ns = now_ns, .own = place };
	struct member *member;

	if (place >= MOST_MEMBERS)
		return;
	member = member_at(group, place);
	if (!member->is_taken)
		return;
	/* Whose turn it is to lose is better known exactly. */
	walk.is_exact = heard->lost && KEPT(group->top) <= SMALL_GROUP;
	if (walk.is_exact || is_due(group, now_ns))
		look_at_all(&walk);

	bpf_spin_lock(&group->lock);
	take_out(group, place);
	catch_up(group, member);
	/* When what is lost now was sent, at the latest. */
	walk.sent_ns = heard->has_timed_out ? member->seen_ns : above(now_ns, least(heard->srtt_us, LONGEST_US) * 1000);
	take_note(group, member, heard, delivered);
	put_in(group, place, now_ns);
	is_full = settle(group, place);
	part = own_part_q10(group, place);
	if (KEPT(member->claim_q10) > KEPT(member->cap_q10)) {
		look(group, place, now_ns);
		judge(group, place, total_q20(group) >> 10);
	}
	walk.is_own = ((__u64)member->used << 11 < least(KEPT(member->cwnd_q20) >> 10, part)) | is_less(KEPT(member->counts_q20), ONE_Q20);
	deliver(group, delivered, is_full);
	if (heard->has_timed_out) {
		KEPT(member->cap_q10) = 1 << 10;
		KEPT(member->used) = 0;
	}
	KEPT(group->lost) += heard->lost;
	/* Where not all of a flow counts the joint window does not grow with it by itself. */
	if (heard->lost || heard->has_timed_out || now_ns >= KEPT(member->same_until_ns))
		look(group, place, now_ns);
	bpf_spin_unlock(&group->lock);
	if (walk.is_exact || is_due(group, now_ns))
		look_at_all(&walk);
	if (heard->lost) {
		lose(&walk, heard);
		if (walk.is_exact || is_due(group, now_ns))
			look_at_all(&walk);
	}
	bpf_spin_lock(&group->lock);
	answer(group, place, heard);
	bpf_spin_unlock(&group->lock);
}

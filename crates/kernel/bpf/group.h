/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* A weighted group under one joint window with whole numbers: crates/congestion/src/joint.rs is the same with its reasons. */
#pragma once

#include "members.h"

#define MOST_LOST 32

/* Up to which measure a part is less than all. */
static __always_inline __u64 bound(const struct group *group, __u64 total_q10)
{
	return (total_q10 << 28) / most(group->level_q28, 1);
}

static __always_inline __u64 part_q10(const struct group *group, __u64 measure, __u64 below, __u64 total_q10)
{
	__u64 is_below = is_less(measure, below);

	return ((KEPT(group->level_q28) * measure * is_below) >> 28) + total_q10 * (1 - is_below);
}

/* Whether a member wants less than its part. Answers how many packets for a measure it wants then. */
static __always_inline __u64 judge(struct group *group, struct member *member, __u64 below, __u64 total_q10)
{
	__u64 measure = KEPT(member->measure), claim = KEPT(member->claim_q10);
	__u64 is_content = is_less(claim, part_q10(group, measure, below, total_q10)) * KEPT(member->is_heard);
	__u64 was_content = KEPT(member->is_content);

	KEPT(group->claimed_q10) += claim * is_content - claim * was_content;
	KEPT(group->open) += measure * was_content - measure * is_content;
	KEPT(member->is_content) = is_content;
	return (claim * is_content << 28) / most(measure, 1);
}

/* Looks at a member and judges it. */
static long look_at_one(__u32 place, struct walk *walk)
{
	struct group *group = walk->group;
	struct member *member = member_at(group, place);
	__u64 wanted_q28;

	bpf_spin_lock(&group->lock);
	look(group, member, walk->now_ns);
	wanted_q28 = judge(group, member, walk->below, walk->total_q20 >> 10);
	bpf_spin_unlock(&group->lock);
	walk->most_q28 = most(walk->most_q28, wanted_q28);
	return 0;
}

/* The joint window is as it was before: what is found out of one member does not change what is found out of the next. */
static __always_inline void look_at_all(struct walk *walk)
{
	KEPT(walk->group->looked_ns) = walk->now_ns;
	walk->total_q20 = total_q20(walk->group);
	walk->below = bound(walk->group, walk->total_q20 >> 10);
	walk->most_q28 = 0;
	each_member(walk, look_at_one);
	KEPT(walk->group->most_q28) = walk->most_q28;
}

/* The level at which parts and what the content ones want are the joint window. Answers whether that is what holds members back. */
static __always_inline __u64 settle(struct group *group, struct member *own)
{
	__u64 total_q10 = total_q20(group) >> 10;
	__u64 wanted_q28 = judge(group, own, bound(group, total_q10), total_q10);
	__u64 claimed = least(KEPT(group->claimed_q10), LARGEST_TOTAL_Q20 >> 10), open = KEPT(group->open), all = KEPT(group->all);
	__u64 level_q28;

	KEPT(group->most_q28) = most(KEPT(group->most_q28), wanted_q28);
	if (open)
		level_q28 = (above(total_q10, claimed) << 28) / open;
	else
		level_q28 = above(KEPT(group->most_q28) + (above(total_q10, claimed) << 28) / most(all, 1),
				  (above(claimed, total_q10) << 28) / most(all, 1));
	KEPT(group->level_q28) = all ? most(level_q28, (total_q10 << 28) / all) : 0;
	return open || claimed >= total_q10;
}

/* A member's part at the level, which bounds its cap. */
static __always_inline __u64 own_part_q10(struct group *group, struct member *own)
{
	__u64 total_q10 = total_q20(group) >> 10;
	__u64 part = part_q10(group, KEPT(own->measure), bound(group, total_q10), total_q10);

	KEPT(own->cap_q10) = least(KEPT(own->cap_q10), 2 * part);
	return part;
}

/* Several at a time, with the lock held: few enough for others to wait, and for the verifier, which follows such a loop step by step. */
#define BLOCK 16

static long share_block(__u32 block, struct walk *walk)
{
	_Pragma("clang loop unroll(disable)")
	for (__u32 j = 0; j < BLOCK; j++) {
		struct member *member = member_at(walk->group, BLOCK * block + j);

		KEPT(member->share_q20) = (KEPT(member->usable_q20) << 20) / walk->total_q20;
	}
	return 0;
}

static long turn_block(__u32 block, struct walk *walk)
{
	struct group *group = walk->group;

	bpf_spin_lock(&group->lock);
	_Pragma("clang loop unroll(disable)")
	for (__u32 j = 0; j < BLOCK; j++) {
		struct member *member = member_at(group, BLOCK * block + j);
		__s64 turn = KEPT(member->turn_q20) + KEPT(member->share_q20);
		__u64 is_next = is_less(KEPT(walk->turn_q20) + (1 << 10), turn) * is_less(0, KEPT(member->usable_q20));

		asm volatile("" : "+r"(is_next));
		KEPT(member->turn_q20) = turn;
		/* The bound is for the verifier. */
		KEPT(walk->place) = (KEPT(walk->place) * (1 - is_next) + (BLOCK * block + j) * is_next) & (2 * MOST_MEMBERS - 1);
		KEPT(walk->turn_q20) = KEPT(walk->turn_q20) * (1 - is_next) + turn * is_next;
	}
	bpf_spin_unlock(&group->lock);
	return 0;
}

static __always_inline void each_block(struct walk *walk, long (*what)(__u32, struct walk *))
{
	bpf_loop((KEPT(walk->group->top) + BLOCK - 1) / BLOCK, (void *)what, walk, 0);
}

/* A lost packet: of the own flow, or else of the one whose turn it is. After a time-out a flow takes a window of them. */
static long lose_one(__u32 number, struct walk *walk)
{
	struct group *group = walk->group;
	struct member *member;

	if (!walk->left_q20)
		return 1;
	walk->place = MOST_MEMBERS;
	if (walk->is_own) {
		walk->place = walk->own;
	} else {
		walk->turn_q20 = -(1LL << 62);
		each_block(walk, turn_block);
	}
	if (walk->place >= MOST_MEMBERS)
		return 1;
	bpf_spin_lock(&group->lock);
	member = member_at(group, walk->place);
	take_out(group, member);
	catch_up(group, member);
	KEPT(member->turn_q20) -= walk->is_own ? 0 : ONE_Q20;
	walk->left_q20 = above(walk->left_q20, walk->has_timed_out ? member->cwnd_q20 : ONE_Q20);
	/* What was sent before it was halved does not halve it again. */
	if (KEPT(group->delivered) > KEPT(member->recovered_at) && walk->sent_ns >= KEPT(member->reduced_ns)) {
		KEPT(member->ssthresh_q20) = most((KEPT(member->cwnd_q20) * walk->full_q20) >> 21, 2 * ONE_Q20);
		KEPT(member->cwnd_q20) = KEPT(member->ssthresh_q20);
		KEPT(member->recovered_at) = KEPT(group->delivered) + walk->in_flight;
		KEPT(member->reduced_ns) = walk->now_ns;
	}
	put_in(group, member, walk->now_ns);
	judge(group, member, walk->below, walk->total_q20 >> 10);
	KEPT(member->share_q20) = (KEPT(member->usable_q20) << 20) / walk->total_q20;
	bpf_spin_unlock(&group->lock);
	return 0;
}

/* All lost packets are the own flow's, or else each is the next one's in turn. `walk` says which, and when they were sent. */
static __always_inline void lose(struct walk *walk, const struct heard *heard)
{
	struct group *group = walk->group;
	__u64 gone = heard->has_timed_out ? heard->used : 0;

	walk->total_q20 = most(total_q20(group), ONE_Q20);
	walk->below = bound(group, walk->total_q20 >> 10);
	walk->in_flight = KEPT(group->in_flight);
	walk->full_q20 = least(((walk->in_flight + gone + KEPT(group->counted)) << 36) / (walk->total_q20 >> 4), ONE_Q20);
	walk->left_q20 = (__u64)heard->lost << 20;
	walk->has_timed_out = heard->has_timed_out;
	if (!walk->is_own)
		each_block(walk, share_block);
	bpf_loop(MOST_LOST, lose_one, walk, 0);
}

/* After a member has come or gone. */
static __always_inline void settle_all(struct walk *walk, struct member *own)
{
	struct group *group = walk->group;

	look_at_all(walk);
	bpf_spin_lock(&group->lock);
	settle(group, own);
	own_part_q10(group, own);
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
	take_out(group, member);
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
	member->turn_q20 = 0;
	put_in(group, member, now_ns);
	KEPT(group->top) = most(KEPT(group->top), place + 1);
	KEPT(group->count)++;
	bpf_spin_unlock(&group->lock);
	settle_all(&walk, member);
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
	take_out(group, member);
	member->is_taken = 0;
	put_in(group, member, now_ns);
	KEPT(group->top) = 0;
	EACH_PLACE(i)
		KEPT(group->top) = most(KEPT(group->top), (i + 1) * KEPT(group->members[i].is_taken));
	bpf_spin_unlock(&group->lock);
	settle_all(&walk, member);
}

/* The member used as much of its flow as if it had used all of it for some time: for a round trip at the most. Its window was what held it
   back, or what was delivered is a part of the flow's. */
static __always_inline void note_use(const struct heard *heard, struct member *member, __u64 delivered)
{
	__u64 silence_ns = above(heard->now_ns, member->seen_ns), srtt_ns = least(heard->srtt_us, LONGEST_US) * 1000;
	__u64 left_q20 = KEPT(member->used_q20) * above(COUNTS_FOR_NS, silence_ns) / COUNTS_FOR_NS;
	__u64 span_ns = heard->is_limited ? least(silence_ns, srtt_ns)
					  : least((srtt_ns * delivered << 10) / most(member->cwnd_q20 >> 10, 1 << 10), COUNTS_FOR_NS);

	KEPT(member->used_q20) = least(left_q20 + (span_ns << 20) / COUNTS_FOR_NS, ONE_Q20);
}

/* What was delivered lets all flows grow, each by its part of the joint window, when it is looked at next. */
static __always_inline void deliver(struct group *group, __u64 delivered, __u64 is_full)
{
	__u64 total = most(total_q20(group), ONE_Q20);

	KEPT(group->delivered) += delivered;
	KEPT(group->grown_q30) += (delivered << 45) / (total >> 5) * is_full;
}

/* What a member heard, before it counts for anything. */
static __always_inline void take_note(struct group *group, struct member *member, const struct heard *heard, __u64 delivered)
{
	if (!KEPT(member->is_heard))
		KEPT(member->cap_q10) = least(KEPT(member->cap_q10), (__u64)group->initial << 10);
	/* Of which next to nothing counts, that one begins again with the initial window. */
	if (KEPT(member->usable_q20) < (__u64)group->initial << 20)
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

static __always_inline void group_heard(struct group *group, __u32 place, struct heard *heard)
{
	struct walk walk = { .group = group, .now_ns = heard->now_ns, .own = place };
	__u64 delivered = least(heard->delivered, 1 << 15), part, is_in_full, is_full, initial_q10;
	struct member *member;
	int is_all;

	if (place >= MOST_MEMBERS)
		return;
	member = member_at(group, place);
	if (!member->is_taken)
		return;
	is_all = above(heard->now_ns, KEPT(group->looked_ns)) >= (heard->lost ? LOOKS_AT_LOSS_NS : LOOKS_EVERY_NS) * KEPT(group->count);
	if (is_all)
		look_at_all(&walk);

	bpf_spin_lock(&group->lock);
	look(group, member, heard->now_ns);
	/* When what is lost now was sent, at the latest. */
	walk.sent_ns = heard->has_timed_out ? member->seen_ns : above(heard->now_ns, least(heard->srtt_us, LONGEST_US) * 1000);
	take_note(group, member, heard, delivered);
	look(group, member, heard->now_ns);
	is_full = settle(group, member);
	part = own_part_q10(group, member);
	is_in_full = 1 - is_less(KEPT(member->counts_q20), ONE_Q20);
	walk.is_own = ((__u64)member->used << 11 < least(KEPT(member->cwnd_q20) >> 10, part)) | (1 - is_in_full);
	deliver(group, delivered, is_full);
	if (heard->has_timed_out) {
		KEPT(member->cap_q10) = 1 << 10;
		KEPT(member->used) = 0;
	}
	KEPT(group->lost) += heard->lost;
	look(group, member, heard->now_ns);
	bpf_spin_unlock(&group->lock);
	if (is_all)
		look_at_all(&walk);
	if (heard->lost)
		lose(&walk, heard);
	if (is_all && heard->lost)
		look_at_all(&walk);

	bpf_spin_lock(&group->lock);
	settle(group, member);
	part = own_part_q10(group, member);
	/* What a flow begins with is always its member's, as far as that uses little of it. */
	initial_q10 = least(KEPT(member->cwnd_q20) >> 10, (__u64)group->initial << 10) * (1 - is_in_full);
	heard->window = most((least(KEPT(member->cap_q10), most(part, initial_q10)) + 512) >> 10, 1);
	heard->total_q20 = total_q20(group);
	bpf_spin_unlock(&group->lock);
}

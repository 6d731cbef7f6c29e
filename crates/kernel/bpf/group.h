/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* A weighted group under one joint window with whole numbers: crates/congestion/src/joint.rs is the same with its reasons. */
#pragma once

#include "fixed.h"

#define MOST_MEMBERS 32
#define MOST_LOST 32
#define INITIAL_WINDOW 10
/* Windows end at 2^19 packets, round trips at 2^22 us, so that no product here is beyond 2^63. */
#define LARGEST_Q20 (1ULL << 39)
#define LONGEST_US (1U << 22)
#define FIRST_ROUND_TRIP_US 100000
#define SILENT_ROUND_TRIPS 4
#define SILENT_AT_LEAST_NS 250000000ULL
/* A flow counts for so many times what its member used of it within this time: crates/congestion/src/usage.rs. */
#define COUNTS_FOR_NS 2000000000ULL
#define LENDS 4

/* A connection, and the virtual flow that it brought. */
struct member {
	__u64 seen_ns;
	__u64 cwnd_q20;
	__u64 ssthresh_q20;
	/* The flow's recovery ends when the group has delivered this much. */
	__u64 recovered_at;
	/* When it was halved last. */
	__u64 reduced_ns;
	/* The mean part of the flow's window that was used, as it was when the member was heard of last. */
	__u64 used_q20;
	__s64 turn_q20;
	/* What is found out of it at each event: which part of its flow's window counts, whether it is heard of (1 or 0), its weight times
	   its round trip, and what it can use at the most. */
	__u64 counts_q20;
	__u64 is_heard;
	__u64 measure;
	__u64 claim_q10;
	/* What it may have at the most on its way to its part, up to twice that. */
	__u64 cap_q10;
	__u32 weight_q16;
	__u32 srtt_us;
	__u32 used;
	__u32 is_limited;
	__u32 is_taken;
	__u32 padding;
};

/* What a member hears, and what it is answered. */
struct heard {
	__u64 now_ns;
	__u32 weight_q16;
	__u32 delivered;
	__u32 lost;
	__u32 has_timed_out;
	__u32 srtt_us;
	__u32 used;
	__u32 is_limited;
	__u32 window;
	__u64 total_q20;
};

struct group {
	struct bpf_spin_lock lock;
	/* Of each virtual flow, packets. */
	__u32 initial;
	__u64 delivered;
	__u64 level_q28;
	/* What a loop over the members sums up or looks for. Here and not in variables, because the verifier would follow each of their values. */
	__u64 total_q20;
	__u64 claimed_q10;
	__u64 open;
	__u64 all;
	__u64 most_q28;
	__u64 is_full;
	__u64 in_flight;
	__u64 counted;
	__u64 full_q20;
	__s64 turn_q20;
	__u64 place;
	/* When what is lost was sent, and how much of it is nobody's yet. */
	__u64 sent_ns;
	__u64 left_q20;
	struct heard heard;
	struct member members[MOST_MEMBERS];
};

/* A loop over the members as a loop: written out, all of them together are a hundred thousand bytes. */
#define EACH_MEMBER(i) _Pragma("clang loop unroll(disable)") for (__u32 i = 0; i < MOST_MEMBERS; i++)

/* A field of the group that is read and written each time, as above. */
#define KEPT(field) (*(volatile typeof(field) *)&(field))

/* A member by its place, in a way that the verifier can see to be within bounds. */
static __always_inline struct member *member_at(struct group *group, __u64 place)
{
	asm volatile("%0 &= 31" : "+r"(place));
	return &group->members[place];
}

/* 1 if a < b, else 0, for differences below 2^63: without a branch, whose both sides the verifier would follow for each member. */
static __always_inline __u64 is_less(__u64 a, __u64 b)
{
	__u64 difference = a - b;

	asm volatile("" : "+r"(difference));
	return difference >> 63;
}

static __always_inline __u64 claim(const struct member *member)
{
	return member->is_limited ? member->cap_q10 : least(member->cap_q10, (__u64)member->used << 10);
}

/* Who is heard of, and what each can use. */
static __always_inline void survey(struct group *group, __u64 now_ns)
{
	EACH_MEMBER(i) {
		struct member *member = &group->members[i];
		__u64 silence_ns = above(now_ns, member->seen_ns);
		__u64 srtt_us = member->srtt_us ? member->srtt_us : FIRST_ROUND_TRIP_US;
		__u64 patience_ns = most(member->srtt_us * 1000ULL * SILENT_ROUND_TRIPS, SILENT_AT_LEAST_NS);

		KEPT(member->counts_q20) = least(LENDS * (member->used_q20 * above(COUNTS_FOR_NS, silence_ns) / COUNTS_FOR_NS), ONE_Q20) *
					   member->is_taken;
		KEPT(member->is_heard) = member->is_taken * (1 - is_less(patience_ns, silence_ns));
		KEPT(member->measure) = most(member->weight_q16 * srtt_us >> 10, 1) * KEPT(member->is_heard);
		KEPT(member->claim_q10) = claim(member);
	}
}

/* What of a flow's window counts: what is used of it lately, and whatever the member needs itself. */
static __always_inline __u64 usable_q20(const struct member *member)
{
	__u64 cwnd = member->cwnd_q20, counts = (cwnd >> 10) * KEPT(member->counts_q20) >> 10;
	__u64 needs = (KEPT(member->claim_q10) << 10) * KEPT(member->is_heard);
	__u64 is_in_full = 1 - is_less(KEPT(member->counts_q20), ONE_Q20);

	return cwnd * is_in_full + least(most(counts, needs), cwnd) * (1 - is_in_full);
}

static __always_inline __u64 total_q20(struct group *group)
{
	KEPT(group->total_q20) = 0;
	EACH_MEMBER(i)
		KEPT(group->total_q20) += usable_q20(&group->members[i]);
	return KEPT(group->total_q20);
}

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

static __always_inline void settle(struct group *group)
{
	__u64 total_q10 = total_q20(group) >> 10;
	__u64 claimed, open, least_q28, below = bound(group, total_q10);

	KEPT(group->claimed_q10) = 0;
	KEPT(group->open) = 0;
	KEPT(group->all) = 0;
	EACH_MEMBER(i) {
		struct member *member = &group->members[i];
		__u64 measure = KEPT(member->measure), claim = KEPT(member->claim_q10);
		__u64 is_content = is_less(claim, part_q10(group, measure, below, total_q10)) * KEPT(member->is_heard);

		KEPT(group->all) += measure;
		KEPT(group->claimed_q10) += claim * is_content;
		KEPT(group->open) += measure * (1 - is_content);
	}
	claimed = KEPT(group->claimed_q10);
	open = KEPT(group->open);
	KEPT(group->is_full) = open || claimed >= total_q10;
	if (!KEPT(group->all)) {
		KEPT(group->level_q28) = 0;
		return;
	}
	least_q28 = (total_q10 << 28) / KEPT(group->all);
	if (open) {
		KEPT(group->level_q28) = most((above(total_q10, claimed) << 28) / open, least_q28);
		return;
	}
	KEPT(group->most_q28) = 0;
	EACH_MEMBER(i) {
		struct member *member = &group->members[i];

		KEPT(group->most_q28) = most(KEPT(group->most_q28),
					     ((KEPT(member->claim_q10) * KEPT(member->is_heard)) << 28) / most(KEPT(member->measure), 1));
	}
	KEPT(group->level_q28) = most(above(KEPT(group->most_q28) + (above(total_q10, claimed) << 28) / KEPT(group->all),
					    (above(claimed, total_q10) << 28) / KEPT(group->all)), least_q28);
}

/* A member's part at the level, which bounds its cap. */
static __always_inline __u64 own_part_q10(struct group *group, struct member *own)
{
	__u64 total_q10 = KEPT(group->total_q20) >> 10;
	__u64 part = part_q10(group, KEPT(own->measure), bound(group, total_q10), total_q10);

	KEPT(own->cap_q10) = least(KEPT(own->cap_q10), 2 * part);
	KEPT(own->claim_q10) = claim(own);
	return part;
}

static __always_inline void grow(struct group *group)
{
	__u64 total_q10 = most(total_q20(group), ONE_Q20) >> 10;

	EACH_MEMBER(i) {
		struct member *member = &group->members[i];
		__u64 beyond = least(KEPT(group->heard.delivered), above(KEPT(group->delivered), member->recovered_at)) *
			       (1 - is_less(usable_q20(member), member->cwnd_q20)) * member->is_taken;
		__u64 each_q20 = member->cwnd_q20 < member->ssthresh_q20 ? member->cwnd_q20 : ONE_Q20;

		KEPT(member->cwnd_q20) = least(member->cwnd_q20 + (((beyond * each_q20 << 8) / total_q10) << 2), LARGEST_Q20);
	}
}

/* All lost packets are the own flow's, or else each is the next one's in turn. After a time-out each flow takes a window of them. */
static __always_inline void lose(struct group *group, __u32 own, __u64 is_own)
{
	__u64 total = most(total_q20(group), ONE_Q20), has_timed_out = is_less(0, KEPT(group->heard.has_timed_out));
	__u64 gone = KEPT(group->heard.used) * has_timed_out;

	KEPT(group->in_flight) = 0;
	KEPT(group->counted) = 0;
	EACH_MEMBER(i) {
		KEPT(group->in_flight) += group->members[i].used * group->members[i].is_heard;
		KEPT(group->counted) += is_less(0, usable_q20(&group->members[i]));
	}
	KEPT(group->full_q20) = least(((KEPT(group->in_flight) + gone + KEPT(group->counted)) << 36) / (total >> 4), ONE_Q20);
	KEPT(group->left_q20) = (__u64)KEPT(group->heard.lost) << 20;
	_Pragma("clang loop unroll(disable)")
	for (__u32 n = 0; n < MOST_LOST; n++) {
		struct member *member;
		__u64 whose;

		if (!KEPT(group->left_q20))
			break;
		KEPT(group->place) = MOST_MEMBERS;
		KEPT(group->turn_q20) = -(1LL << 62);
		EACH_MEMBER(i) {
			__u64 is_next, usable;

			member = &group->members[i];
			usable = usable_q20(member);
			KEPT(member->turn_q20) += (usable << 20) / total * (1 - is_own);
			is_next = is_less(KEPT(group->turn_q20) + (1 << 10), KEPT(member->turn_q20)) * is_less(0, usable);
			KEPT(group->place) = KEPT(group->place) * (1 - is_next) + i * is_next;
			KEPT(group->turn_q20) = KEPT(group->turn_q20) * (1 - is_next) + KEPT(member->turn_q20) * is_next;
		}
		whose = own * is_own + KEPT(group->place) * (1 - is_own);
		if (whose >= MOST_MEMBERS)
			break;
		member = member_at(group, whose);
		KEPT(member->turn_q20) -= ONE_Q20 * (1 - is_own);
		KEPT(group->left_q20) = above(KEPT(group->left_q20), KEPT(member->cwnd_q20) * has_timed_out + ONE_Q20 * (1 - has_timed_out));
		/* What was sent before it was halved does not halve it again. */
		if (KEPT(group->delivered) > KEPT(member->recovered_at) && KEPT(group->sent_ns) >= KEPT(member->reduced_ns)) {
			KEPT(member->ssthresh_q20) = most((KEPT(member->cwnd_q20) * KEPT(group->full_q20)) >> 21, 2 * ONE_Q20);
			KEPT(member->cwnd_q20) = KEPT(member->ssthresh_q20);
			KEPT(member->recovered_at) = KEPT(group->delivered) + KEPT(group->in_flight);
			KEPT(member->reduced_ns) = KEPT(group->heard.now_ns);
		}
	}
}

/* A connection joins: its place, or MOST_MEMBERS where there is none. One that has sent on its own brings its window and threshold; 0 is a window
   that begins. */
static __always_inline __u32 group_join(struct group *group, __u32 weight_q16, __u32 cwnd, __u32 ssthresh, __u64 now_ns)
{
	__u32 place;

	bpf_spin_lock(&group->lock);
	KEPT(group->place) = MOST_MEMBERS;
	EACH_MEMBER(i)
		if (!group->members[MOST_MEMBERS - 1 - i].is_taken)
			KEPT(group->place) = MOST_MEMBERS - 1 - i;
	place = KEPT(group->place);
	if (place < MOST_MEMBERS) {
		struct member *member = member_at(group, place);

		if (!group->delivered) {
			group->delivered = 1;
			group->initial = INITIAL_WINDOW;
		}
		member->is_taken = 1;
		member->weight_q16 = weight_q16;
		member->seen_ns = now_ns;
		member->srtt_us = 0;
		member->used = 0;
		member->is_limited = 1;
		if (!cwnd)
			cwnd = group->initial;
		member->cap_q10 = least((__u64)cwnd << 10, LARGEST_Q20 >> 10);
		member->cwnd_q20 = least((__u64)cwnd << 20, LARGEST_Q20);
		member->ssthresh_q20 = least((__u64)ssthresh << 20, LARGEST_Q20);
		member->recovered_at = 0;
		member->reduced_ns = 0;
		member->used_q20 = ONE_Q20;
		member->turn_q20 = 0;
		survey(group, now_ns);
		settle(group);
		own_part_q10(group, member);
	}
	bpf_spin_unlock(&group->lock);
	return place;
}

static __always_inline void group_leave(struct group *group, __u32 place, __u64 now_ns)
{
	if (place >= MOST_MEMBERS)
		return;
	bpf_spin_lock(&group->lock);
	member_at(group, place)->is_taken = 0;
	survey(group, now_ns);
	settle(group);
	bpf_spin_unlock(&group->lock);
}

/* The member used as much of its flow as if it had used all of it for some time: for a round trip at the most. Its window was what held it
   back, or what was delivered is a part of the flow's. Answers when what it lost now was sent, at the latest. */
static __always_inline __u64 note_use(const struct heard *heard, struct member *member, __u64 delivered)
{
	__u64 now_ns = KEPT(heard->now_ns), silence_ns = above(now_ns, member->seen_ns);
	__u64 srtt_ns = least(KEPT(heard->srtt_us), LONGEST_US) * 1000;
	__u64 left_q20 = KEPT(member->used_q20) * above(COUNTS_FOR_NS, silence_ns) / COUNTS_FOR_NS;
	__u64 span_ns = least((srtt_ns * delivered << 10) / most(member->cwnd_q20 >> 10, 1 << 10), COUNTS_FOR_NS);

	if (KEPT(heard->is_limited))
		span_ns = least(silence_ns, srtt_ns);
	KEPT(member->used_q20) = least(left_q20 + (span_ns << 20) / COUNTS_FOR_NS, ONE_Q20);
	return KEPT(heard->has_timed_out) ? member->seen_ns : above(now_ns, srtt_ns);
}

static __always_inline void group_heard(struct group *group, __u32 place, struct heard *told)
{
	struct member *member;
	struct heard *heard;
	__u64 part, is_own, is_in_full, initial_q10;

	if (place >= MOST_MEMBERS)
		return;
	bpf_spin_lock(&group->lock);
	heard = &group->heard;
	*heard = *told;
	heard->delivered = least(heard->delivered, 1 << 15);
	member = member_at(group, place);
	survey(group, KEPT(heard->now_ns));
	if (!KEPT(member->is_heard))
		KEPT(member->cap_q10) = least(KEPT(member->cap_q10), (__u64)group->initial << 10);
	/* Of which next to nothing counts, that one begins again with the initial window. */
	if (usable_q20(member) < (__u64)group->initial << 20)
		KEPT(member->cwnd_q20) = least(KEPT(member->cwnd_q20), (__u64)group->initial << 20);
	KEPT(group->sent_ns) = note_use(heard, member, KEPT(heard->delivered));
	member->seen_ns = KEPT(heard->now_ns);
	member->weight_q16 = KEPT(heard->weight_q16);
	member->srtt_us = least(KEPT(heard->srtt_us), LONGEST_US);
	member->used = least(KEPT(heard->used), 1 << 19);
	member->is_limited = KEPT(heard->is_limited);
	KEPT(member->cap_q10) += (__u64)KEPT(heard->delivered) << 10;
	if (!KEPT(heard->is_limited))
		KEPT(member->cap_q10) = least(KEPT(member->cap_q10), most(2ULL * KEPT(member->used), group->initial) << 10);
	KEPT(group->delivered) += KEPT(heard->delivered);
	survey(group, KEPT(heard->now_ns));
	settle(group);
	part = own_part_q10(group, member);
	is_in_full = 1 - is_less(KEPT(member->counts_q20), ONE_Q20);
	is_own = ((__u64)member->used << 11 < least(KEPT(member->cwnd_q20) >> 10, part)) | (1 - is_in_full);
	if (KEPT(group->is_full))
		grow(group);
	if (KEPT(heard->has_timed_out)) {
		KEPT(member->cap_q10) = 1 << 10;
		KEPT(member->used) = 0;
		KEPT(member->claim_q10) = claim(member);
	}
	if (KEPT(heard->lost))
		lose(group, place, is_own);
	settle(group);
	part = own_part_q10(group, member);
	/* What a flow begins with is always its member's, as far as that uses little of it. */
	initial_q10 = least(KEPT(member->cwnd_q20) >> 10, (__u64)group->initial << 10) * (1 - is_in_full);
	part = most(part, initial_q10);
	KEPT(heard->window) = most((least(KEPT(member->cap_q10), part) + 512) >> 10, 1);
	told->window = KEPT(heard->window);
	told->total_q20 = KEPT(group->total_q20);
	bpf_spin_unlock(&group->lock);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The members of a group, and the sums over them. What a member adds to a sum is kept beside it, so that an acknowledgement takes out and puts in
   what one member adds, however many there are. */
#pragma once

#include "fixed.h"

#define MOST_MEMBERS 256
#define INITIAL_WINDOW 10
/* Windows end at 2^19 packets, the joint one at 2^24, round trips at 2^22 us, so that no product here is beyond 2^63. */
#define LARGEST_Q20 (1ULL << 39)
#define LARGEST_TOTAL_Q20 (1ULL << 44)
#define LONGEST_US (1U << 22)
#define FIRST_ROUND_TRIP_US 100000
#define SILENT_ROUND_TRIPS 4
#define SILENT_AT_LEAST_NS 250000000ULL
/* A flow counts for so many times what its member used of it within this time: crates/congestion/src/flow_use.rs. */
#define COUNTS_FOR_NS 2000000000ULL
#define LENDS 4
/* An event looks at the other members where something changes what they add to the sums, or what they are judged as. In a group of so few it does at
   once. In a larger one the last look has to be as long ago for each member, so that looks take the same small part of a processor's time; none is
   later than 51 ms. What is in slow start changes faster. */
#define SMALL_GROUP 8
#define LOOKS_EVERY_NS 200000ULL
#define LOOKS_IN_SLOW_START_NS 50000ULL
/* Between two looks a flow grows for so many round trips at the most. */
#define MOST_ROUNDS_Q30 (1ULL << 34)

/* A connection, and the virtual flow that it brought. */
struct member {
	/* What another one's event reads is together. Until when (0: it is in slow start), and until how much is delivered, what it adds to the sums stays the
	   same if it is not heard of. */
	__u64 same_until_ns;
	__u64 same_until_delivered;
	/* Of what it adds, as it was when it was looked at last: its weight times its round trip, what it can use at the most, altogether and for a measure,
	   whether that is less than its part, and whether it is heard of (1 or 0). */
	__u64 measure;
	__u64 claim_q10;
	__u64 claim_q28;
	__u64 is_content;
	__u64 is_heard;

	__u64 seen_ns;
	__u64 cwnd_q20;
	__u64 ssthresh_q20;
	/* The flow's recovery ends when the group has delivered this much. */
	__u64 recovered_at;
	/* When it was halved last. */
	__u64 reduced_ns;
	/* The mean part of the flow's window that was used, as it was when the member was heard of last. */
	__u64 used_q20;
	/* What it may have at the most on its way to its part, up to twice that. */
	__u64 cap_q10;
	__u32 weight_q16;
	__u32 srtt_us;
	__u32 used;
	__u32 is_limited;
	__u64 is_taken;

	/* The rest of what it adds to the sums: what of its flow counts, and what it has in flight. */
	__u64 counts_q20;
	__u64 in_flight;
	/* By what its flow grows in a round trip, how much of that counts, and what the group had grown and delivered by then. */
	__u64 each_q20;
	__u64 rate_q10;
	__u64 grown_q30;
	__u64 delivered;
};

/* What of a member's flow counts, as it was when it was looked at last, and how much a lost packet is its own: as much as it was, and `usable` times
   what `turned` has grown since then, modulo 2^64. All of them are together, because a lost packet reads all of them. */
struct turn {
	__u64 usable_q20;
	__u64 turn_q50;
};

/* As long as these hold no member adds anything else to the sums, and none is judged otherwise: time, what is delivered, and the level. */
struct bounds {
	__u64 until_ns;
	__u64 until_delivered;
	/* What a member wants for a measure: of those that want their part the least, of the content ones the most. */
	__u64 least_open_q28;
	__u64 most_content_q28;
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
	__u64 lost;
	__u64 level_q28;
	/* For how many round trips flows have grown. */
	__u64 grown_q30;
	/* What was delivered last, and for how many round trips flows have grown by that. */
	__u64 step;
	__u64 step_q30;
	/* When all members were looked at last. */
	__u64 looked_ns;
	struct bounds bounds;
	/* For how many joint windows packets were lost. */
	__u64 turned_q50;
	/* Sums over the members. The last two tell how much the flows have grown since they were looked at: that is rate times grown less rated, all of it
	   modulo 2^64, so that nothing is lost by rounding however long a group lives. */
	__u64 usable_q20;
	__u64 counted;
	__u64 in_flight;
	__u64 all;
	__u64 open;
	__u64 claimed_q10;
	__u64 rate_q10;
	__u64 rated_q40;
	/* No place from here on is taken, and how many before it are. */
	__u64 top;
	__u64 count;
	/* What a loop over the places has found. Here and not in a variable, because the verifier would follow each of its values. */
	__u64 place;
	struct turn turns[MOST_MEMBERS];
	struct member members[MOST_MEMBERS];
};

/* What a walk over all members goes by, and what it finds. */
struct walk {
	struct group *group;
	__u64 now_ns;
	__u64 total_q20;
	/* Whose turn it is to lose, and how much so. */
	__u64 place;
	__u64 turn_q50;
	/* What is lost and nobody's yet, when it was sent, what was in flight by then, and which part of all windows that is. */
	__u64 left_q20;
	__u64 sent_ns;
	__u64 in_flight;
	__u64 full_q20;
	__u64 own;
	__u64 is_own;
	/* Whether members are looked at that add what they did, too. */
	__u64 is_exact;
	__u64 has_timed_out;
};

/* A field of the group that is read and written each time: the verifier would follow each value of a variable. */
#define KEPT(field) (*(volatile typeof(field) *)&(field))

#define EACH_PLACE(i) _Pragma("clang loop unroll(disable)") for (__u32 i = 0; i < MOST_MEMBERS; i++)

/* A member by its place, in a way that the verifier can see to be within bounds. */
static __always_inline struct member *member_at(struct group *group, __u64 place)
{
	asm volatile("%0 &= 255" : "+r"(place));
	return &group->members[place];
}

static __always_inline struct turn *turn_at(struct group *group, __u64 place)
{
	asm volatile("%0 &= 255" : "+r"(place));
	return &group->turns[place];
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

/* A part of the time that a flow counts for. A product, because a division takes ten times as long. */
static __always_inline __u64 counting_q30(__u64 time_ns)
{
	return least(time_ns, COUNTS_FOR_NS) * ((1ULL << 62) / COUNTS_FOR_NS) >> 32;
}

/* What of a flow counts now: up to all of it, as far as it is not more. */
static __always_inline __u64 lent_q20(const struct member *member, __u64 now_ns)
{
	__u64 left_q30 = counting_q30(above(COUNTS_FOR_NS, above(now_ns, member->seen_ns)));

	return LENDS * (member->used_q20 * left_q30 >> 30) * member->is_taken;
}

static __always_inline __u64 is_heard(const struct member *member, __u64 now_ns)
{
	__u64 patience_ns = most(member->srtt_us * 1000ULL * SILENT_ROUND_TRIPS, SILENT_AT_LEAST_NS);

	return member->is_taken * (1 - is_less(patience_ns, above(now_ns, member->seen_ns)));
}

/* What of a flow's window counts: what is used of it lately, and whatever the member needs itself. */
static __always_inline __u64 usable_q20(const struct member *member, __u64 counts_q20, __u64 needs_q10)
{
	__u64 cwnd = member->cwnd_q20, is_in_full = 1 - is_less(counts_q20, ONE_Q20);

	return cwnd * is_in_full + least(most((cwnd >> 10) * counts_q20 >> 10, needs_q10 << 10), cwnd) * (1 - is_in_full);
}

/* The joint window: what counted when it was looked at, and what has grown since. */
static __always_inline __u64 total_q20(struct group *group)
{
	__u64 seen = least(KEPT(group->usable_q20), LARGEST_TOTAL_Q20);
	__u64 grown = (KEPT(group->rate_q10) * KEPT(group->grown_q30) - KEPT(group->rated_q40)) >> 20;

	return seen + least(grown, seen);
}

static __always_inline void take_out(struct group *group, __u64 place)
{
	struct member *member = member_at(group, place);
	struct turn *turn = turn_at(group, place);
	__u64 usable = KEPT(turn->usable_q20);

	KEPT(turn->turn_q50) += usable * KEPT(group->turned_q50);
	KEPT(group->usable_q20) -= usable;
	KEPT(group->counted) -= is_less(0, usable);
	KEPT(group->in_flight) -= KEPT(member->in_flight);
	KEPT(group->all) -= KEPT(member->measure);
	KEPT(group->open) -= KEPT(member->measure) * (1 - KEPT(member->is_content));
	KEPT(group->claimed_q10) -= KEPT(member->claim_q10) * KEPT(member->is_content);
	KEPT(group->rate_q10) -= KEPT(member->rate_q10);
	KEPT(group->rated_q40) -= KEPT(member->rate_q10) * KEPT(member->grown_q30);
}

/* Nothing changes while a flow counts in full and its member is heard of, or when neither is so any more. A flow counts in full until `lent` is one, and
   that falls by two in a second at the most. A flow in slow start grows as it does. */
static __always_inline void keep_until(struct group *group, struct member *member, __u64 lent_q20, __u64 now_ns)
{
	__u64 patience_ns = most(member->srtt_us * 1000ULL * SILENT_ROUND_TRIPS, SILENT_AT_LEAST_NS);
	__u64 in_full_until = now_ns + (above(lent_q20, ONE_Q20) * (COUNTS_FOR_NS / LENDS) >> 20);
	__u64 heard_until = KEPT(member->is_heard) ? member->seen_ns + patience_ns : ~0ULL;
	__u64 is_recovering = 1 - is_less(member->recovered_at, KEPT(group->delivered));

	KEPT(member->same_until_ns) = lent_q20 ? least(in_full_until, heard_until) : heard_until;
	if (lent_q20 && member->cwnd_q20 < member->ssthresh_q20)
		KEPT(member->same_until_ns) = 0;
	KEPT(member->same_until_delivered) = is_recovering ? member->recovered_at : ~0ULL;
}

/* It counts as one that wants more, until `judge` has said otherwise. */
static __always_inline void put_in(struct group *group, __u64 place, __u64 now_ns)
{
	struct member *member = member_at(group, place);
	struct turn *turn = turn_at(group, place);
	__u64 lent = lent_q20(member, now_ns), counts = least(lent, ONE_Q20), heard = is_heard(member, now_ns);
	__u64 srtt_us = member->srtt_us ? member->srtt_us : FIRST_ROUND_TRIP_US;
	__u64 claimed = claim(member), measure = most(member->weight_q16 * srtt_us >> 10, 1) * heard;
	__u64 usable = usable_q20(member, counts, claimed * heard);
	__u64 each_q20;

	KEPT(member->counts_q20) = counts;
	KEPT(member->is_heard) = heard;
	KEPT(member->measure) = measure;
	KEPT(member->claim_q10) = claimed;
	KEPT(member->claim_q28) = (least(claimed, LARGEST_TOTAL_Q20 >> 10) << 28) / most(measure, 1);
	KEPT(member->is_content) = 0;
	KEPT(member->in_flight) = member->used * heard;
	KEPT(turn->usable_q20) = usable;
	each_q20 = member->cwnd_q20 < member->ssthresh_q20 ? member->cwnd_q20 : ONE_Q20;
	KEPT(member->each_q20) = each_q20 * (1 - is_less(usable, member->cwnd_q20)) * member->is_taken;
	/* Where not all of a flow counts, its member's needs do, and they do not grow with it. */
	KEPT(member->rate_q10) = (KEPT(member->each_q20) >> 10) * is_less(member->recovered_at, KEPT(group->delivered)) *
				 (1 - is_less(counts, ONE_Q20));
	KEPT(member->grown_q30) = KEPT(group->grown_q30);
	KEPT(member->delivered) = KEPT(group->delivered);
	keep_until(group, member, lent, now_ns);

	KEPT(turn->turn_q50) -= usable * KEPT(group->turned_q50);
	KEPT(group->usable_q20) += usable;
	KEPT(group->counted) += is_less(0, usable);
	KEPT(group->in_flight) += KEPT(member->in_flight);
	KEPT(group->all) += measure;
	KEPT(group->open) += measure;
	KEPT(group->rate_q10) += KEPT(member->rate_q10);
	KEPT(group->rated_q40) += KEPT(member->rate_q10) * KEPT(member->grown_q30);
}

/* Of what its flow has grown since it was looked at, the part since its recovery has ended. */
static __always_inline void catch_up(struct group *group, struct member *member)
{
	__u64 rounds_q30 = least(KEPT(group->grown_q30) - KEPT(member->grown_q30), MOST_ROUNDS_Q30);
	__u64 each_q20 = KEPT(member->each_q20);

	if (member->recovered_at > KEPT(member->delivered)) {
		__u64 since = KEPT(group->delivered) - KEPT(member->delivered);
		__u64 beyond = least(since, above(KEPT(group->delivered), member->recovered_at));

		/* It has ended with what was delivered last. */
		if (beyond <= KEPT(group->step)) {
			since = KEPT(group->step);
			rounds_q30 = KEPT(group->step_q30);
		}
		rounds_q30 = rounds_q30 * ((beyond << 20) / most(since, 1)) >> 20;
	}
	/* In two parts, so that neither product is beyond 2^63. */
	KEPT(member->cwnd_q20) = least(member->cwnd_q20 + ((each_q20 >> 10) * rounds_q30 >> 20) + ((each_q20 & 1023) * rounds_q30 >> 30), LARGEST_Q20);
}

/* Looks at a member: what it adds to the sums is what it is now. */
static __always_inline void look(struct group *group, __u64 place, __u64 now_ns)
{
	take_out(group, place);
	catch_up(group, member_at(group, place));
	put_in(group, place, now_ns);
}

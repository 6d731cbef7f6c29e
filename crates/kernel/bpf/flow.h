/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What is kept of a flow, and what can be set. User space reads and writes both: see src/layout.rs. */
#pragma once

#define INTERVALS 16

enum algorithm {
	TFWC = 1,
	MULTCP = 2,
	GROUP = 3,
};

/* What can be changed while flows run. */
struct parameters {
	__u32 algorithm;
	/* TTFWC: which part of the distance to Reno's window is added, of 2^20. */
	__u32 share_q20;
	/* TTFWC: how many loss intervals are averaged, 8 or 16. */
	__u32 intervals;
	/* Most packets that one acknowledgement counts for where the window grows. In a kernel one can stand for many. */
	__u32 most_each;
	/* MulTCP: for how many flows it counts, of 2^10. */
	__u32 flows_q10;
	/* MulTCP: up to how many times the initial window slow start triples, of 2^10. */
	__u32 triples_q10;
	/* Group: how often the rules have changed. Its last bit says which of the two sets is in force. */
	__u32 generation;
	__u32 padding;
};

/* Windows and intervals are in packets. */
struct flow {
	__u64 cwnd_q20;
	__u64 ssthresh_q20;
	/* Packets acknowledged, those in recoveries included: the place in the order of packets. */
	__u64 sequence;
	/* Where the open loss interval began. */
	__u64 first;
	/* The window of the equation at the last loss event, Reno's from the middle of the flat period to its end, and what is
	   added to the equation's in the increasing period, once that is known. */
	__u64 base_q20;
	__u64 reno_q20;
	__u64 addition_q20;
	/* Length of the flat period. */
	__u64 flat_q16;
	/* The mean of the intervals that have ended, and the weighted sum of all of them but the oldest, for the mean with the open one. */
	__u64 closed_mean_q16;
	__u64 later_sum_q4;
	__u64 triples_below_q20;
	/* When it asked for a place in the group last. */
	__u64 asked_ns;
	__u32 later_weights;
	__u32 weights;
	/* What of `sequence` is assumed to be acknowledged in the recovery that runs. */
	__u32 in_recovery;
	__u32 restart_window;
	__u32 loss_events;
	__u32 timeouts;
	/* How many intervals have ended, INTERVALS at the most, and how many of them counted when the mean was reckoned. */
	__u32 count;
	__u32 intervals;
	__u8 has_history;
	__u8 has_acked;
	/* Reno runs: before the first loss event, or because the equation gives less than two packets. */
	__u8 is_reno;
	/* The kernel's state of the connection, as the group was told. */
	__u8 state;
	/* TTFWC: something may be added where the increase begins. */
	__u8 may_add;
	__u8 padding[3];
	/* Which group, and the place in it, from 1; 0: none. Of which generation of rules the weight is, and what the group was told of. */
	__u32 group;
	__u32 place;
	__u32 generation;
	__u32 weight_q16;
	__u32 told_delivered;
	__u32 told_lost;
	__u32 window;
	/* Whether its program gives the weight, and not the rules. */
	__u32 is_given;
	/* The intervals, newest first. */
	__u32 closed_q4[INTERVALS];
};

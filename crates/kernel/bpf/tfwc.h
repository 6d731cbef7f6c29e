/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* TFWC and TTFWC (bachelor's thesis "Extending TFWC for multimedia applications", chapter 3) with whole numbers. The same algorithm with
   its reasons is in crates/congestion/src/tfwc; tests hold this one against it, event by event. */
#pragma once

#include "fixed.h"
#include "flow.h"

#define RENO_BELOW_Q20 (2 * ONE_Q20)
/* The longest mean interval, 2^24 packets: the window is beyond 5,000 packets times what any path needs. */
#define LONGEST_Q16 (1ULL << 40)
#define LONGEST_CLOSED (1ULL << 24)

/* The window at a mean loss interval I (equation 2.1 with p = 1/I):
   sqrt(I) / (sqrt(2/3) + 12 sqrt(3/8) / I + 32 * 12 sqrt(3/8) / I^3). */
__noinline __u64 tfwc_window_q20(__u64 interval_q16)
{
	__u64 interval = least(most(interval_q16, 1 << 16), LONGEST_Q16);
	__u64 root_q16 = square_root(interval << 16);
	__u64 cube = 4136820409817314ULL / interval; /* 235.15 * 2^44 */

	cube = (cube << 8) / interval;
	cube = (cube << 16) / interval;
	return (root_q16 << 24) / (856159 + 504982960183ULL / interval + cube);
}

/* The mean interval at which the window is this, at least one. */
__noinline __u64 tfwc_interval_q16(__u64 window_q20)
{
	__u64 shorter = 1 << 16, longer = LONGEST_Q16;

	for (int i = 0; i < 40; i++) {
		__u64 middle = (shorter + longer) / 2;

		/* 1 if the window is smaller, 0 if not: without a branch, whose both sides the verifier would follow 40 times over. */
		__u64 is_smaller = (tfwc_window_q20(middle) - window_q20) >> 63;

		shorter += (middle - shorter) * is_smaller;
		longer = middle + (longer - middle) * is_smaller;
	}
	return longer;
}

/* The weight of interval `i` of `n` (RFC 5348, section 5.4), as a multiple of what makes all of them whole. */
static __always_inline __u32 tfwc_weight(__u32 i, __u32 n)
{
	__u32 full = n / 2 + 1;

	return 2 * i < n ? full : n - i;
}

/* Reckons what only a loss event changes. */
__noinline int tfwc_reckon(struct flow *flow, __u32 intervals)
{
	__u64 sum = 0, later = 0;
	__u32 weights = 0, later_weights = 0, full, count;

	if (!flow)
		return 0;
	flow->intervals = intervals;
	full = intervals / 2 + 1;
	count = least(flow->count, intervals);
	for (__u32 i = 0; i < INTERVALS; i++) {
		if (i >= count)
			break;
		sum += (__u64)flow->closed_q4[i] * tfwc_weight(i, intervals);
		weights += tfwc_weight(i, intervals);
		if (i + 1 < count) {
			later += (__u64)flow->closed_q4[i] * tfwc_weight(i + 1, intervals);
			later_weights += tfwc_weight(i + 1, intervals);
		}
	}
	if (!weights)
		return 0;
	flow->weights = weights;
	flow->later_sum_q4 = later;
	flow->later_weights = later_weights;
	flow->closed_mean_q16 = (sum << 12) / weights;
	/* How long the open interval has to be for a mean as long as that of the closed ones: (mean (w_0 + later weights) - later sum) / w_0. */
	flow->flat_q16 = (above(sum * (full + later_weights), later * weights) << 12) / (weights * full);
	return 0;
}

static __always_inline __u64 tfwc_open(const struct flow *flow)
{
	return least(above(flow->sequence, flow->first) + 1, LONGEST_CLOSED);
}

/* The mean loss interval, with the open one where that makes it longer. */
static __always_inline __u64 tfwc_mean_q16(const struct flow *flow)
{
	__u64 full = flow->intervals / 2 + 1;
	__u64 sum_q4 = ((tfwc_open(flow) * full) << 4) + flow->later_sum_q4;

	return most((sum_q4 << 12) / (full + flow->later_weights), flow->closed_mean_q16);
}

/* An acknowledgement of `acked` packets outside recovery. */
__noinline int tfwc_acknowledged(struct flow *flow, const struct parameters *parameters, __u32 acked, int is_cwnd_limited)
{
	__u64 open_q16, target;

	if (!flow || !parameters)
		return 0;
	flow->sequence += acked;
	flow->in_recovery = 0;
	if (acked)
		flow->has_acked = 1;
	if (flow->has_history && flow->intervals != parameters->intervals)
		tfwc_reckon(flow, parameters->intervals);
	if (!is_cwnd_limited || !acked)
		return 0;
	if (flow->cwnd_q20 < flow->ssthresh_q20) {
		flow->cwnd_q20 += least(acked, parameters->most_each) << 20;
		return 0;
	}
	if (flow->is_reno) {
		flow->cwnd_q20 += ((__u64)acked << 40) / most(flow->cwnd_q20, ONE_Q20);
		return 0;
	}
	open_q16 = tfwc_open(flow) << 16;
	if (open_q16 <= flow->flat_q16) {
		/* Reno's sawtooth and the flat window enclose the same area when they cross in the middle of the flat period. */
		if (open_q16 >= flow->flat_q16 / 2)
			flow->reno_q20 += ((__u64)acked << 40) / most(flow->reno_q20, ONE_Q20);
		return 0;
	}
	if (flow->may_add) {
		flow->addition_q20 = (above(flow->reno_q20, flow->base_q20) * parameters->share_q20) >> 20;
		flow->may_add = 0;
	}
	target = tfwc_window_q20(tfwc_mean_q16(flow)) + flow->addition_q20;
	flow->cwnd_q20 = most(flow->cwnd_q20, least(target, flow->cwnd_q20 + ((__u64)acked << 20)));
	return 0;
}

/* Whether the window falls no further than the newest interval alone can make it (equation 3.1). */
static __always_inline int tfwc_fell_little(const struct flow *flow, __u64 next_q20)
{
	return above(flow->base_q20, next_q20) * flow->weights < flow->base_q20 * (flow->intervals / 2 + 1);
}

/* A loss event ends an interval. Leaves the window to go on with in `ssthresh_q20`. */
__noinline int tfwc_loss_event(struct flow *flow, const struct parameters *parameters, __u32 flight)
{
	__u64 half, next, interval;
	int was_reno, is_first;

	if (!flow || !parameters)
		return 0;
	half = most(least(flow->cwnd_q20, (flight + 1ULL) << 20) / 2, RENO_BELOW_Q20);
	is_first = !flow->has_history;
	interval = is_first ? tfwc_interval_q16(half) >> 12 : most(least(above(flow->sequence, flow->first), LONGEST_CLOSED), 1) << 4;
	for (int i = INTERVALS - 1; i > 0; i--)
		flow->closed_q4[i] = flow->closed_q4[i - 1];
	flow->closed_q4[0] = interval;
	flow->count = least(flow->count + 1, INTERVALS);
	flow->first = flow->sequence;
	flow->has_history = 1;
	tfwc_reckon(flow, parameters->intervals);
	flow->has_acked = 0;
	flow->loss_events++;
	next = is_first ? half : tfwc_window_q20(flow->closed_mean_q16);
	was_reno = flow->is_reno;
	flow->is_reno = next < RENO_BELOW_Q20;
	flow->may_add = !is_first && !flow->is_reno && !was_reno && tfwc_fell_little(flow, next);
	flow->addition_q20 = 0;
	flow->base_q20 = flow->reno_q20 = most(next, RENO_BELOW_Q20);
	flow->ssthresh_q20 = flow->is_reno && was_reno ? half : flow->base_q20;
	return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* MulTCP (Crowcroft and Oechslin 1998) with whole numbers: crates/congestion/src/multcp.rs is the same with its reasons. */
#pragma once

#include "fixed.h"
#include "flow.h"

__noinline int multcp_acknowledged(struct flow *flow, const struct parameters *parameters, __u32 acked, int is_cwnd_limited)
{
	if (!flow || !parameters || !is_cwnd_limited || !acked)
		return 0;
	if (flow->cwnd_q20 < flow->ssthresh_q20) {
		__u64 packets = least(acked, parameters->most_each);

		if (flow->cwnd_q20 < flow->triples_below_q20)
			packets *= 2;
		flow->cwnd_q20 += packets << 20;
	} else {
		/* N packets a round trip: N / cwnd for each acknowledged one. */
		__u64 counted = least(acked, parameters->most_each);

		flow->cwnd_q20 += ((counted * parameters->flows_q10) << 30) / most(flow->cwnd_q20, ONE_Q20);
	}
	return 0;
}

/* Of N flows one halves its part. */
__noinline int multcp_loss_event(struct flow *flow, const struct parameters *parameters, __u32 flight)
{
	__u64 full, part;

	if (!flow || !parameters)
		return 0;
	full = least(flow->cwnd_q20, (flight + 1ULL) << 20);
	part = (full << 9) / most(parameters->flows_q10, 1 << 10);
	flow->ssthresh_q20 = most(full - least(part, full), 2 * ONE_Q20);
	flow->loss_events++;
	return 0;
}

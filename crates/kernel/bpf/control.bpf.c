// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/* Congestion controls for the kernel's TCP. `make bpf` compiles this; the object is kept beside it. */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#include "tcp.h"
#include "flow.h"
#include "tfwc.h"
#include "multcp.h"
#include "group.h"
#include "weights.h"

/* The kernel lends its functions only to programs that may be combined with it. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The bounds of what user space sets: 1000 flows; weights of 0.001 and 1000. With more packets at once the increase of MulTCP would not fit a number. */
#define MOST_FLOWS_Q10 (1000U << 10)
#define LEAST_WEIGHT_Q16 66
#define MOST_WEIGHT_Q16 (1000U << 16)
#define MOST_ACKED (1 << 13)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct parameters);
} parameters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

/* What user space has set, within its bounds whatever the map holds: other programs of root's can write to it. */
static __always_inline int parameters_now(struct parameters *set)
{
	__u32 zero = 0;
	const struct parameters *found = bpf_map_lookup_elem(&parameters, &zero);

	if (!found)
		return 0;
	*set = *found;
	set->share_q20 = least(set->share_q20, ONE_Q20);
	set->intervals = set->intervals == INTERVALS / 2 ? INTERVALS / 2 : INTERVALS;
	set->flows_q10 = least(most(set->flows_q10, 1 << 10), MOST_FLOWS_Q10);
	return 1;
}

/* How long a connection that found the group full waits before it asks again. A second is long beside its ACKs, and short beside its life. */
#define ASKS_EVERY_NS 1000000000ULL

/* A flow that begins with this window. */
static __always_inline void begin(struct flow *flow, const struct parameters *set, __u32 cwnd, __u32 ssthresh)
{
	flow->cwnd_q20 = (__u64)cwnd << 20;
	flow->restart_window = cwnd;
	flow->ssthresh_q20 = (__u64)ssthresh << 20;
	flow->base_q20 = flow->cwnd_q20;
	flow->intervals = set->intervals;
	flow->has_acked = 1;
	flow->is_reno = 1;
	flow->triples_below_q20 = set->flows_q10 > 1 << 10 ? least((__u64)cwnd * set->triples_q10, LARGEST_Q20 >> 10) << 10 : 0;
}

/* The kernel moves the window as well: in recovery, after a pause, when nobody fills it. */
static __always_inline void take_over(struct flow *flow, const struct tcp_sock *tp)
{
	if (flow->cwnd_q20 >> 20 != tp->snd_cwnd)
		flow->cwnd_q20 = (__u64)tp->snd_cwnd << 20;
	if (flow->ssthresh_q20 >> 20 != tp->snd_ssthresh)
		flow->ssthresh_q20 = (__u64)tp->snd_ssthresh << 20;
}

static __always_inline void acknowledged(struct flow *flow, const struct parameters *set, __u32 acked, int is_cwnd_limited)
{
	if (set->algorithm == MULTCP)
		multcp_acknowledged(flow, set, least(acked, MOST_ACKED), is_cwnd_limited);
	else
		tfwc_acknowledged(flow, set, acked, is_cwnd_limited);
	flow->cwnd_q20 = least(flow->cwnd_q20, LARGEST_Q20);
}

/* Everything in flight will be acknowledged or sent again before the next acknowledgement is told. */
static __always_inline void loss_event(struct flow *flow, const struct parameters *set, __u32 flight)
{
	if (set->algorithm == MULTCP)
		multcp_loss_event(flow, set, flight);
	else
		tfwc_loss_event(flow, set, flight);
	flow->in_recovery = flight;
	flow->sequence += flight;
}

/* The kernel asks for a threshold. What of a window is still lost belongs to its loss event. */
static __always_inline void threshold_asked(struct flow *flow, const struct parameters *set, __u32 flight)
{
	if (flow->has_acked || set->algorithm == MULTCP)
		loss_event(flow, set, flight);
}

/* A time-out: the rest of the recovery is told after all. */
static __always_inline void timed_out(struct flow *flow)
{
	flow->sequence = above(flow->sequence, flow->in_recovery);
	flow->in_recovery = 0;
	flow->timeouts++;
}

SEC("struct_ops")
void BPF_PROG(control_init, struct sock *sk)
{
	struct parameters set;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct tcp_sock *tp = tcp_of(sk);

	if (flow && parameters_now(&set))
		begin(flow, &set, tp->snd_cwnd, tp->snd_ssthresh);
}

SEC("struct_ops")
void BPF_PROG(control_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct parameters set;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	struct tcp_sock *tp = tcp_of(sk);
	int is_limited;

	if (!flow || !parameters_now(&set))
		return;
	take_over(flow, tp);
	is_limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) ||
		     (tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out);
	acknowledged(flow, &set, acked, is_limited);
	tp->snd_cwnd = most(least(flow->cwnd_q20 >> 20, tp->snd_cwnd_clamp), 1);
}

SEC("struct_ops")
__u32 BPF_PROG(control_ssthresh, struct sock *sk)
{
	struct parameters set;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	struct tcp_sock *tp = tcp_of(sk);

	if (!flow || !parameters_now(&set))
		return most(tp->snd_cwnd / 2, 2);
	take_over(flow, tp);
	threshold_asked(flow, &set, tp->packets_out);
	return most(flow->ssthresh_q20 >> 20, 2);
}

SEC("struct_ops")
void BPF_PROG(control_set_state, struct sock *sk, __u8 state)
{
	struct flow *flow;

	if (state != TCP_CA_LOSS)
		return;
	flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (flow)
		timed_out(flow);
}

SEC("struct_ops")
__u32 BPF_PROG(control_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

/* `choosers`: TCP_CONG_NON_RESTRICTED for what takes one share, whoever has it; 0, only with CAP_NET_ADMIN, for what takes more. */
#define CONTROL(variable, title, choosers)                                                                             \
	SEC(".struct_ops.link")                                                                                        \
	struct tcp_congestion_ops variable = {                                                                         \
		.init = (void *)control_init,                                                                          \
		.cong_avoid = (void *)control_cong_avoid,                                                              \
		.ssthresh = (void *)control_ssthresh,                                                                  \
		.set_state = (void *)control_set_state,                                                                \
		.undo_cwnd = (void *)control_undo_cwnd,                                                                \
		.flags = choosers,                                                                                     \
		.name = title,                                                                                         \
	}

CONTROL(tfwc, "tfwc", TCP_CONG_NON_RESTRICTED);
CONTROL(ttfwc, "ttfwc", TCP_CONG_NON_RESTRICTED);
CONTROL(multcp, "multcp", 0);
/* Where the operator lets everybody take more than a share. Only one of the two is loaded. */
CONTROL(multcp_anyone, "multcp", TCP_CONG_NON_RESTRICTED);

#include "group_control.h"

/* Writes a line of a flow: addresses, windows, loss events. */
static __always_inline void tell_flow(struct seq_file *seq, struct sock *sk, const struct flow *flow)
{
	__u64 mean_q16 = flow->has_history ? tfwc_mean_q16(flow) : 0;

	if (sk->__sk_common.skc_family == AF_INET6)
		BPF_SEQ_PRINTF(seq, "[%pI6c]:%u [%pI6c]:%u ", &sk->__sk_common.skc_v6_rcv_saddr, sk->__sk_common.skc_num,
			       &sk->__sk_common.skc_v6_daddr, bpf_ntohs(sk->__sk_common.skc_dport));
	else
		BPF_SEQ_PRINTF(seq, "%pI4:%u %pI4:%u ", &sk->__sk_common.skc_rcv_saddr, sk->__sk_common.skc_num,
			       &sk->__sk_common.skc_daddr, bpf_ntohs(sk->__sk_common.skc_dport));
	BPF_SEQ_PRINTF(seq, "%llu %llu %u %u %llu ", flow->cwnd_q20 >> 20, flow->ssthresh_q20 >> 20, flow->loss_events, flow->timeouts,
		       mean_q16);
	/* 0: in no group, or alone because it is full. Then which, or which it would be in. */
	BPF_SEQ_PRINTF(seq, "%u %u\n", flow->place ? flow->weight_q16 : 0, flow->group);
}

SEC("iter/bpf_sk_storage_map")
int tell_flows(struct bpf_iter__bpf_sk_storage_map *context)
{
	struct seq_file *seq = context->meta->seq;
	struct sock *sk = context->sk;
	struct flow *flow = context->value;

	if (sk && flow)
		tell_flow(seq, sk, flow);
	return 0;
}

/* The same for members of groups, and behind them a line for each group: which, members, joint window of 2^-20 packets, packets delivered and lost. */
SEC("iter/bpf_sk_storage_map")
int tell_members(struct bpf_iter__bpf_sk_storage_map *context)
{
	struct seq_file *seq = context->meta->seq;
	struct sock *sk = context->sk;
	struct flow *flow = context->value;

	if (sk && flow)
		tell_flow(seq, sk, flow);
	if (sk)
		return 0;
	for (__u32 number = 0; number < MOST_GROUPS; number++) {
		struct group *group = group_at(number);

		if (group)
			BPF_SEQ_PRINTF(seq, "group %u %llu %llu %llu %llu\n", number, group->count, total_q20(group),
				       above(group->delivered, 1), group->lost);
	}
	return 0;
}

/* What a test has happen to a flow. */
struct event {
	/* 0: the beginning, with a window and a threshold; 1: an acknowledgement; 2: a loss event; 3: a time-out; 4: a pause;
	   5: the kernel asks for a threshold. */
	__u32 what;
	__u32 packets;
	__u32 is_cwnd_limited;
	__u32 ssthresh;
	/* Whether the time-out is not the first for its segment. */
	__u32 is_repeated;
	__u32 padding;
	/* The windows after it. */
	__u64 cwnd_q20;
	__u64 ssthresh_q20;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow);
} replayed SEC(".maps");

/* Tells an event to the same functions that the kernel's TCP calls above, for a flow without a socket. */
SEC("syscall")
int replay(struct event *event)
{
	__u32 zero = 0;
	struct parameters set;
	struct flow *flow = bpf_map_lookup_elem(&replayed, &zero);

	if (!flow || !parameters_now(&set))
		return 1;
	switch (event->what) {
	case 0:
		__builtin_memset(flow, 0, sizeof(*flow));
		begin(flow, &set, event->packets, event->ssthresh);
		break;
	case 1:
		acknowledged(flow, &set, event->packets, event->is_cwnd_limited);
		break;
	case 2:
		loss_event(flow, &set, event->packets);
		flow->cwnd_q20 = flow->ssthresh_q20;
		break;
	case 3:
		if (!event->is_repeated)
			threshold_asked(flow, &set, event->packets);
		timed_out(flow);
		flow->cwnd_q20 = ONE_Q20;
		break;
	case 4:
		flow->cwnd_q20 = least(flow->cwnd_q20, (__u64)flow->restart_window << 20);
		break;
	case 5:
		threshold_asked(flow, &set, event->packets);
		break;
	default:
		return 1;
	}
	event->cwnd_q20 = flow->cwnd_q20;
	event->ssthresh_q20 = flow->ssthresh_q20;
	return 0;
}

/* What a test has happen to a member of the group. */
struct group_event {
	/* 1: a member joins, with what it has used and its window as the window and the threshold that it brings; 2: one leaves; 3: one hears something. */
	__u32 what;
	__u32 place;
	struct heard heard;
};

/* The same for the group as `replay` for a flow. */
SEC("syscall")
int replay_group(struct group_event *event)
{
	struct group *state = group_at(0);
	struct heard heard = event->heard;

	if (!state)
		return 1;
	switch (event->what) {
	case 1:
		event->place = group_join(state, heard.weight_q16, heard.used, heard.window, heard.now_ns);
		break;
	case 2:
		group_leave(state, event->place, heard.now_ns);
		break;
	case 3:
		group_heard(state, event->place, &heard);
		event->heard.window = heard.window;
		event->heard.total_q20 = heard.total_q20;
		break;
	default:
		return 1;
	}
	return 0;
}

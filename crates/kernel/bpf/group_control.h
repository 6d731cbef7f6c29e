/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The control `group`: what the kernel's TCP calls, for sockets whose groups and weights rules give. */
#pragma once

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOST_GROUPS);
	__type(key, __u32);
	__type(value, struct group);
} group_state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct rules);
} rules SEC(".maps");

/* A program writes it by the socket's descriptor; it goes with the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct given);
} given SEC(".maps");

static __always_inline struct group *group_at(__u32 number)
{
	return bpf_map_lookup_elem(&group_state, &number);
}

/* The socket's weight and group: as its program gives them, or by the rules that are in force. Answers whether it is in another group than before. */
static __noinline int find_weight(struct sock *sk, struct flow *flow, __u32 generation)
{
	__u32 set = generation & 1, before = flow->group, group = 0, weight_q16 = ONE_Q16;
	const struct given *own = bpf_sk_storage_get(&given, sk, 0, 0);
	struct rules *found;

	flow->generation = generation;
	flow->is_given = own ? 1 : 0;
	if (own) {
		weight_q16 = own->weight_q16;
		group = own->group < MOST_GROUPS ? own->group : 0;
	} else {
		found = bpf_map_lookup_elem(&rules, &set);
		if (found)
			weight_q16 = weight_of(found, sk, &group);
	}
	flow->weight_q16 = least(most(weight_q16, LEAST_WEIGHT_Q16), MOST_WEIGHT_Q16);
	flow->group = group;
	return group != before;
}

/* Whether the socket's weight and group are still what they were. Only a socket whose program gives them costs more than a comparison. */
static __always_inline int is_as_before(struct sock *sk, const struct flow *flow, __u32 generation)
{
	const struct given *own;

	if (!flow->is_given)
		return flow->generation == generation;
	own = bpf_sk_storage_get(&given, sk, 0, 0);
	return own && own->weight_q16 == flow->weight_q16 && own->group == flow->group;
}

/* Tells the group what happened to a socket since it was told last, and takes its window. */
static __noinline void tell_group(struct sock *sk, struct flow *flow, __u32 lost_at_least, __u32 has_timed_out)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct group *group = group_at(flow->group);
	struct heard heard = {};
	__u32 flight, is_resting;

	if (!group || !flow->place)
		return;
	heard.now_ns = bpf_ktime_get_ns();
	heard.weight_q16 = flow->weight_q16;
	heard.delivered = tp->delivered - flow->told_delivered;
	heard.lost = most(tp->lost - flow->told_lost, lost_at_least);
	heard.has_timed_out = has_timed_out;
	heard.srtt_us = tp->srtt_us >> 3;
	flight = tp->packets_out - tp->sacked_out + heard.delivered;
	/* Where the application rests the kernel keeps what was when it sent last. While losses are recovered from little is in flight as well. */
	is_resting = flow->state == TCP_CA_OPEN && !tp->sacked_out && !has_timed_out && 2 * flight < tp->max_packets_out;
	heard.used = is_resting ? flight : tp->max_packets_out;
	heard.is_limited = !is_resting && (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) ||
					   (tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out));
	flow->told_delivered = tp->delivered;
	flow->told_lost = tp->lost;
	group_heard(group, flow->place - 1, &heard);
	flow->window = heard.window;
	flow->cwnd_q20 = (__u64)heard.window << 20;
}

/* A place in the group, for a connection that brings this window and threshold. Where there is none it is plain Reno, and asks again later. */
static __noinline void ask_for_place(struct sock *sk, struct flow *flow, __u32 cwnd, __u32 ssthresh)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct parameters set;
	struct group *group;
	__u32 place;

	if (!parameters_now(&set))
		return;
	find_weight(sk, flow, set.generation);
	group = group_at(flow->group);
	if (!group)
		return;
	flow->asked_ns = bpf_ktime_get_ns();
	flow->told_delivered = tp->delivered;
	flow->told_lost = tp->lost;
	place = group_join(group, flow->weight_q16, cwnd, ssthresh, flow->asked_ns);
	flow->place = place < MOST_MEMBERS ? place + 1 : 0;
}

SEC("struct_ops")
void BPF_PROG(group_init, struct sock *sk)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct tcp_sock *tp = tcp_of(sk);

	if (!flow)
		return;
	flow->cwnd_q20 = (__u64)tp->snd_cwnd << 20;
	flow->ssthresh_q20 = (__u64)TCP_INFINITE_SSTHRESH << 20;
	flow->window = tp->snd_cwnd;
	ask_for_place(sk, flow, 0, TCP_INFINITE_SSTHRESH);
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
}

static __noinline void give_up_place(struct flow *flow)
{
	struct group *group = group_at(flow->group);

	if (group && flow->place)
		group_leave(group, flow->place - 1, bpf_ktime_get_ns());
	flow->place = 0;
}

SEC("struct_ops")
void BPF_PROG(group_release, struct sock *sk)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);

	if (flow)
		give_up_place(flow);
}

/* After a change of the rules, or of what is given: the weight, and a place in another group if it is in another one. */
static __noinline void follow_weight(struct sock *sk, struct flow *flow)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct parameters set;
	__u32 before = flow->group, now;

	if (!parameters_now(&set) || is_as_before(sk, flow, set.generation) || !find_weight(sk, flow, set.generation))
		return;
	now = flow->group;
	flow->group = before;
	give_up_place(flow);
	flow->group = now;
	ask_for_place(sk, flow, tp->snd_cwnd, tp->snd_ssthresh);
	flow->window = tp->snd_cwnd;
}

/* Each acknowledgement, whatever is being recovered. */
SEC("struct_ops")
void BPF_PROG(group_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	struct tcp_sock *tp = tcp_of(sk);

	if (!flow)
		return;
	if (!flow->place) {
		flow->cwnd_q20 = (__u64)tp->snd_cwnd << 20;
		flow->ssthresh_q20 = (__u64)tp->snd_ssthresh << 20;
		if (flow->state != TCP_CA_OPEN || bpf_ktime_get_ns() - flow->asked_ns < ASKS_EVERY_NS)
			return;
		ask_for_place(sk, flow, tp->snd_cwnd, tp->snd_ssthresh);
		flow->window = tp->snd_cwnd;
		return;
	}
	follow_weight(sk, flow);
	tell_group(sk, flow, 0, 0);
	/* Recovery goes down to the threshold. */
	if (flow->state == TCP_CA_RECOVERY || flow->state == TCP_CA_CWR)
		tp->snd_ssthresh = most(flow->window, 2);
}

SEC("struct_ops")
void BPF_PROG(group_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	struct tcp_sock *tp = tcp_of(sk);

	/* Where the group is full a connection is on its own. */
	if (!flow || !flow->place)
		tcp_reno_cong_avoid(sk, ack, acked);
	else
		tp->snd_cwnd = most(least(flow->window, tp->snd_cwnd_clamp), 1);
}

SEC("struct_ops")
__u32 BPF_PROG(group_ssthresh, struct sock *sk)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	struct tcp_sock *tp = tcp_of(sk);

	if (!flow || !flow->place)
		return tcp_reno_ssthresh(sk);
	/* When the timer has run out all that is not SACKed is marked as lost. */
	tell_group(sk, flow, 1, tp->lost_out + tp->sacked_out >= tp->packets_out);
	flow->loss_events++;
	flow->ssthresh_q20 = most(flow->window, 2) << 20;
	return most(flow->window, 2);
}

SEC("struct_ops")
void BPF_PROG(group_set_state, struct sock *sk, __u8 state)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);

	if (!flow)
		return;
	flow->state = state;
	if (state != TCP_CA_LOSS)
		return;
	flow->timeouts++;
	if (flow->place)
		tell_group(sk, flow, 0, 1);
}

SEC("struct_ops")
__u32 BPF_PROG(group_undo_cwnd, struct sock *sk)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);

	return flow && flow->place ? most(flow->window, tcp_of(sk)->snd_cwnd) : tcp_reno_undo_cwnd(sk);
}

/* All members together have as many shares as there are members, wherever each sends: a user's members that send to this machine itself would
   bring shares to the one that sends through the uplink. So it is as restricted as `multcp`. */
#define GROUP_CONTROL(variable, choosers)                                                                              \
	SEC(".struct_ops.link")                                                                                        \
	struct tcp_congestion_ops variable = {                                                                         \
		.init = (void *)group_init,                                                                            \
		.release = (void *)group_release,                                                                      \
		.pkts_acked = (void *)group_acked,                                                                     \
		.cong_avoid = (void *)group_cong_avoid,                                                                \
		.ssthresh = (void *)group_ssthresh,                                                                    \
		.set_state = (void *)group_set_state,                                                                  \
		.undo_cwnd = (void *)group_undo_cwnd,                                                                  \
		.flags = choosers,                                                                                     \
		.name = "group",                                                                                       \
	}

GROUP_CONTROL(group, 0);
GROUP_CONTROL(group_anyone, TCP_CONG_NON_RESTRICTED);

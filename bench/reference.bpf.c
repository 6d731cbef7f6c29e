// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/* The kernel's own controls behind the same kind of hook as ours: BPF programs that call them, and one that only keeps
   a window, which is what a hook costs by itself. bench/kernel_cost.py compiles and registers this. */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "tcp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern void cubictcp_init(struct sock *sk) __ksym;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;

SEC("struct_ops")
void BPF_PROG(cubic_init, struct sock *sk)
{
	cubictcp_init(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(cubic_ssthresh, struct sock *sk)
{
	return cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(cubic_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	cubictcp_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
void BPF_PROG(cubic_state, struct sock *sk, __u8 state)
{
	cubictcp_state(sk, state);
}

SEC("struct_ops")
void BPF_PROG(cubic_event, struct sock *sk, enum tcp_ca_event event)
{
	cubictcp_cwnd_event(sk, event);
}

SEC("struct_ops")
void BPF_PROG(cubic_acked, struct sock *sk, const struct ack_sample *sample)
{
	cubictcp_acked(sk, sample);
}

SEC("struct_ops")
__u32 BPF_PROG(reno_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(reno_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(any_undo, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

/* What a flow may have in flight, whatever happens: eight of them fill the path and lose something now and then. */
#define FIXED_WINDOW 10

SEC("struct_ops")
__u32 BPF_PROG(empty_ssthresh, struct sock *sk)
{
	return FIXED_WINDOW;
}

SEC("struct_ops")
void BPF_PROG(empty_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	((struct tcp_sock *)sk)->snd_cwnd = FIXED_WINDOW;
}

SEC(".struct_ops")
struct tcp_congestion_ops bench_cubic = {
	.init = (void *)cubic_init,
	.ssthresh = (void *)cubic_ssthresh,
	.cong_avoid = (void *)cubic_avoid,
	.set_state = (void *)cubic_state,
	.cwnd_event = (void *)cubic_event,
	.pkts_acked = (void *)cubic_acked,
	.undo_cwnd = (void *)any_undo,
	.name = "bench_cubic",
};

SEC(".struct_ops")
struct tcp_congestion_ops bench_reno = {
	.ssthresh = (void *)reno_ssthresh,
	.cong_avoid = (void *)reno_avoid,
	.undo_cwnd = (void *)any_undo,
	.name = "bench_reno",
};

SEC(".struct_ops")
struct tcp_congestion_ops bench_empty = {
	.ssthresh = (void *)empty_ssthresh,
	.cong_avoid = (void *)empty_avoid,
	.undo_cwnd = (void *)any_undo,
	.name = "bench_empty",
};

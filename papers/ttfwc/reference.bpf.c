// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/* The kernel's own controls behind the same kind of hook as ours: BPF programs that call them, and one that only keeps
   a window, which is what a hook costs by itself. */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* What of the kernel's types is used here; where the fields lie is found out when it is loaded. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	__u32 sk_mark;
};

struct ack_sample {
	__u32 pkts_acked;
};

struct tcp_sock {
	__u32 snd_cwnd;
};

enum tcp_ca_event { CA_EVENT_TX_START };

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*init)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
};

#pragma clang attribute pop

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

/* What a flow may have in flight, whatever happens. */
#ifndef WINDOW
#define WINDOW 36
#endif

SEC("struct_ops")
__u32 BPF_PROG(window_ssthresh, struct sock *sk)
{
	return WINDOW;
}

SEC("struct_ops")
void BPF_PROG(window_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	((struct tcp_sock *)sk)->snd_cwnd = WINDOW;
}

SEC(".struct_ops")
struct tcp_congestion_ops hook_cubic = {
	.init = (void *)cubic_init,
	.ssthresh = (void *)cubic_ssthresh,
	.cong_avoid = (void *)cubic_avoid,
	.set_state = (void *)cubic_state,
	.cwnd_event = (void *)cubic_event,
	.pkts_acked = (void *)cubic_acked,
	.undo_cwnd = (void *)any_undo,
	.name = "hook_cubic",
};

SEC(".struct_ops")
struct tcp_congestion_ops hook_reno = {
	.ssthresh = (void *)reno_ssthresh,
	.cong_avoid = (void *)reno_avoid,
	.undo_cwnd = (void *)any_undo,
	.name = "hook_reno",
};

SEC(".struct_ops")
struct tcp_congestion_ops hook_window = {
	.ssthresh = (void *)window_ssthresh,
	.cong_avoid = (void *)window_avoid,
	.undo_cwnd = (void *)any_undo,
	.name = "hook_window",
};

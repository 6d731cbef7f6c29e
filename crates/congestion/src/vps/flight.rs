//! What members have in flight: each packet stands for one of a virtual flow, which hears what becomes of it.

use std::collections::BTreeMap;
use std::ops::Range;

use anabranch_units::{Bytes, Duration, Time};

use super::group::Group;
use super::heard::Heard;
use super::names::{MemberId, VirtualId};
use super::records::Record;
use super::virtual_flow::VirtualFlow;

impl Group {
    /// A member has sent the bytes of a range of its own sequence. More than its allowance counts too.
    pub fn on_sent(&mut self, id: MemberId, range: Range<u64>, now: Time) {
        let bytes = range.end.saturating_sub(range.start);
        let Some(member) = self.members.get_mut(id).filter(|_| bytes > 0) else { return };
        let Some(pool) = self.pools.get_mut(member.pool) else { return };
        let granted = bytes.min(member.allowance);
        member.allowance -= granted;
        pool.reserved -= granted;
        member.served = member.served.more(bytes - granted, member.weight);
        member.wanted = member.wanted.saturating_sub(bytes);
        member.touched = now;
        member.in_flight += bytes;
        pool.note_rich(id, member);
        // What is sent together stands for one virtual flow as long as that has credit: a burst is dropped
        // together as well.
        let may_send = |id: &VirtualId| {
            self.virtuals.get(*id).is_some_and(|flow| flow.pool == member.pool && flow.free() >= self.segment)
        };
        let is_own = self.virtuals.get(member.own).is_some_and(|flow| !flow.counts_in_full());
        let flow_id = Some(member.own).filter(|own| is_own && may_send(own)).unwrap_or_else(|| {
            let sending = pool.sending.filter(may_send);
            let shared = sending.or_else(|| pool.readiest(member.pool, &self.virtuals)).unwrap_or(member.own);
            pool.sending = Some(shared);
            shared
        });
        // What is sent again before its loss was told takes the place of the first one.
        self.take_out(id, std::slice::from_ref(&range), |flow, record, _| flow.release(record.bytes()));
        let mut place = 0;
        self.with_flow(flow_id, |flow| place = flow.send(bytes));
        if let Some(member) = self.members.get_mut(id) {
            member.records.add(range, flow_id, place);
        }
        self.requeue(id);
    }

    /// What lies in these ranges of a member's sequence is in flight no more: `tell` tells the virtual flows,
    /// of each record and of how much it is in all. Answers that.
    fn take_out(
        &mut self,
        id: MemberId,
        ranges: &[Range<u64>],
        tell: impl Fn(&mut VirtualFlow, &Record, u64),
    ) -> u64 {
        let Some(member) = self.members.get_mut(id) else { return 0 };
        let mut taken = std::mem::take(&mut self.taken);
        ranges.iter().for_each(|range| member.records.take(range.clone(), &mut taken));
        let whole = taken.iter().map(Record::bytes).sum();
        member.in_flight -= whole;
        for record in taken.drain(..) {
            self.with_flow(record.flow, |flow| tell(flow, &record, whole));
        }
        // It has room for next time.
        self.taken = taken;
        whole
    }

    /// An acknowledgement of bytes of a member's sequence: the cumulative part and the SACK blocks. What is
    /// known already counts once. Where a receiver acknowledges every second segment, virtual flows hear as
    /// often.
    pub fn on_ack(&mut self, id: MemberId, ranges: &[Range<u64>], heard: &Heard) {
        let cwnd =
            self.members.get(id).and_then(|member| self.virtuals.get(member.own)).map(VirtualFlow::cwnd);
        let acked = self.take_out(id, ranges, |flow, record, acked| {
            flow.acknowledge(record.place, record.bytes(), acked, heard);
        });
        if let Some(member) = self.members.get_mut(id).filter(|_| acked > 0) {
            member.cap = u64::MAX;
            let own = cwnd.map_or(1, |cwnd| cwnd.get().max(1));
            let span = heard.srtt.as_secs_f64() * acked as f64 / own as f64;
            member.usage.used(heard.now, Duration::from_secs_f64(span));
        }
        self.requeue(id);
        if let (Some(watch), Some(rtt)) = (&mut self.watch, heard.rtt) {
            watch.sample(id, heard.now, rtt);
        }
    }

    /// Bytes of a member's sequence were lost.
    pub fn on_loss(&mut self, id: MemberId, range: Range<u64>, now: Time) {
        self.take_out(id, &[range], |flow, record, _| flow.lose(record.place, record.bytes(), now));
        self.requeue(id);
    }

    /// Bytes of a member's sequence are neither acknowledged nor lost, and in flight no more: what nobody
    /// acknowledges, such as QUIC's packets of mere acknowledgements.
    pub fn release(&mut self, id: MemberId, range: Range<u64>) {
        self.take_out(id, &[range], |flow, record, _| flow.release(record.bytes()));
        self.requeue(id);
    }

    /// The same of the oldest bytes that a member has in flight: nothing will be heard of them, and the
    /// network has them no more.
    pub fn release_oldest(&mut self, id: MemberId, bytes: Bytes) {
        let oldest = self.members.get(id).and_then(|member| member.records.oldest(bytes.get()));
        if let Some(range) = oldest {
            self.release(id, range);
        }
    }

    /// A member's retransmission timer ran out: everything it had in flight is lost.
    pub fn on_timeout(&mut self, id: MemberId, now: Time) {
        let Some(member) = self.members.get_mut(id) else { return };
        let records = member.records.take_all();
        member.in_flight = 0;
        member.cap = self.segment;
        let mut latest: BTreeMap<VirtualId, (u64, u64)> = BTreeMap::new();
        for record in records {
            let entry = latest.entry(record.flow).or_default();
            *entry = (entry.0.max(record.place), entry.1 + record.bytes());
        }
        // Those that stood for most of it lose, until their windows are as much as what is lost; from the
        // others it is taken away.
        let mut left: u64 = latest.values().map(|(_, bytes)| bytes).sum();
        let mut latest: Vec<_> = latest.into_iter().collect();
        latest.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
        for (id, (place, bytes)) in latest {
            if left == 0 {
                self.with_flow(id, |flow| flow.release(bytes));
                continue;
            }
            left = left.saturating_sub(self.virtuals.get(id).map_or(0, |flow| flow.cwnd().get()));
            self.with_flow(id, |flow| flow.time_out(place, bytes, now));
        }
        // What it was granted beyond its probe goes to the others.
        let wanted = self.members.get(id).map_or(0, |member| member.wanted);
        self.want(id, Bytes::new(wanted.min(self.segment)));
        self.want(id, Bytes::new(wanted));
        self.requeue(id);
    }
}

//! What leaves a sender next: what is sent again, parity, media.

use anabranch_protocol::live::packed;
use anabranch_protocol::live::wire::{
    Content, Header, MAX_MEDIA_HEADER, MAX_PARITY_HEADER, Width, encode_data, low_bits, micros,
};
use anabranch_units::{Bytes, Time};

use super::super::connection::{Load, MOST_NARROW};
use super::super::control::packet_size;
use super::super::{ConnectionId, PACKET_OVERHEAD, most_kept};
use super::Sender;
use super::protection::WaitingParity;

/// What leaves next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    Again(u64),
    Parity,
    Media,
}

impl Sender {
    /// What leaves next, and when it came into the sender: the oldest first, as it is needed first. A loss
    /// often means that the queue on the way was full, and that others make way now: what comes in time only
    /// if they do is sent again when nothing else waits.
    pub(super) fn next_item(&self, now: Time) -> Option<(Item, Time)> {
        let again =
            |since| self.history.next_again(since).map(|(sequence, time)| (Item::Again(sequence), time));
        let parity = || self.protection.front().map(|packet| (Item::Parity, packet.first_time));
        let media = || self.queue.front().map(|packet| (Item::Media, packet.time));
        again(now + self.queueing() - self.settings.latency)
            .or_else(parity)
            .or_else(media)
            .or_else(|| again(Time::ZERO))
    }

    /// The most bytes that this item's datagram has.
    pub(super) fn length(&self, item: Item) -> usize {
        let media = |part: &[u8]| MAX_MEDIA_HEADER + packed::payload(part).len();
        let length = match item {
            Item::Again(sequence) => self.history.payload(sequence).map(media),
            Item::Parity => self.protection.front().map(|packet| MAX_PARITY_HEADER + packet.shard.len()),
            Item::Media => self.queue.front().map(|packet| media(&packet.payload)),
        };
        length.unwrap_or_default()
    }

    /// This item does not leave.
    pub(super) fn give_up(&mut self, item: Item) {
        match item {
            Item::Again(sequence) => self.history.give_up(sequence),
            Item::Parity => drop(self.protection.pop()),
            Item::Media => drop(self.queue.pop()),
        }
    }

    /// The datagram of this item, which leaves on this connection.
    pub(super) fn send(&mut self, item: Item, id: ConnectionId, now: Time) -> Option<Vec<u8>> {
        let waits = self.waiting() > 1;
        let connection = self.connections.get(&id)?;
        // Whether the rate, and not the stream, decides when the next one leaves.
        let has_more = waits && connection.rate().next_send() + connection.interval() > now;
        let width = if self.history.unsettled(self.next) < MOST_NARROW { Width::Narrow } else { Width::Wide };
        let mut media = Bytes::ZERO;
        let connection = self.connections.get_mut(&id)?;
        let (datagram, dropped) = match item {
            Item::Again(sequence) => {
                let (time, payload) = self.history.take_again(sequence)?;
                self.counts.again += 1;
                self.demand.add(packet_size(), now);
                let encode = |header| encode_media(header, sequence, time, true, &payload);
                connection.send(self.bursts.leaves(), Load::Media(sequence), width, has_more, now, encode)
            }
            Item::Parity => {
                let WaitingParity { first, media, parity, index, shard, .. } = self.protection.pop()?;
                self.counts.parity += 1;
                self.demand.add(packet_size(), now);
                let content = Content::Parity { first: low_bits(first), media, parity, index, shard: &shard };
                let encode = |header| encode_data(header, content);
                connection.send(self.bursts.leaves(), Load::Parity, width, has_more, now, encode)
            }
            Item::Media => {
                let packet = self.queue.pop()?;
                let sequence = self.next;
                self.next += 1;
                self.counts.media += 1;
                media = packed::stream_bytes(&packet.payload) - packed::left_out_bytes(&packet.payload);
                let encode = |header| encode_media(header, sequence, packet.time, false, &packet.payload);
                let left = connection.send(
                    self.bursts.leaves(),
                    Load::Media(sequence),
                    width,
                    has_more,
                    now,
                    encode,
                );
                self.protection.protect(sequence, &packet, now);
                self.history.sent(sequence, packet, most_kept(self.settings.latency));
                left
            }
        };
        let size = Bytes::of(datagram.len()) + PACKET_OVERHEAD;
        self.counts.left = (self.counts.left.0 + media, self.counts.left.1 + size);
        self.lost(dropped, now);
        Some(datagram)
    }
}

fn encode_media(header: Header, sequence: u64, time: Time, is_again: bool, part: &[u8]) -> Vec<u8> {
    let (sequence, time) = (header.width.low(sequence), low_bits(micros(time)));
    let (is_packed, payload) = (packed::has_left_out(part), packed::payload(part));
    encode_data(header, Content::Media { sequence, time, is_again, is_packed, payload })
}

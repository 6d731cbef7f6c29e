//! What leaves a sender next: what is sent again, parity, media.

use anabranch_protocol::live::stuffing;
use anabranch_protocol::live::wire::{
    Content, Header, MEDIA_HEADER, PARITY_HEADER, encode_data, low_bits, micros,
};
use anabranch_units::{Bytes, Time};

use super::super::connection::Load;
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

    /// Bytes of this item's datagram.
    pub(super) fn length(&self, item: Item) -> usize {
        let media = |packed: &[u8]| MEDIA_HEADER + stuffing::payload(packed).len();
        let length = match item {
            Item::Again(sequence) => self.history.payload(sequence).map(media),
            Item::Parity => self.protection.front().map(|packet| PARITY_HEADER + packet.shard.len()),
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
        let has_more = waits && connection.next_send() + connection.interval() > now;
        let mut media = Bytes::ZERO;
        let size = Bytes::of(self.length(item)) + PACKET_OVERHEAD;
        let connection = self.connections.get_mut(&id)?;
        let (datagram, dropped) = match item {
            Item::Again(sequence) => {
                let (time, payload) = self.history.take_again(sequence)?;
                self.counts.again += 1;
                self.demand.add(packet_size(), now);
                let (header, dropped) =
                    connection.send(self.bursts.leaves(), Load::Media(sequence), size, has_more, now);
                (encode_media(header, sequence, time, true, &payload), dropped)
            }
            Item::Parity => {
                let WaitingParity { first, media, parity, index, shard, .. } = self.protection.pop()?;
                self.counts.parity += 1;
                self.demand.add(packet_size(), now);
                let (header, dropped) =
                    connection.send(self.bursts.leaves(), Load::Parity, size, has_more, now);
                let content = Content::Parity { first: low_bits(first), media, parity, index, shard: &shard };
                (encode_data(header, content), dropped)
            }
            Item::Media => {
                let packet = self.queue.pop()?;
                let sequence = self.next;
                self.next += 1;
                self.counts.media += 1;
                media = Bytes::of(stuffing::payload(&packet.payload).len());
                let (header, dropped) =
                    connection.send(self.bursts.leaves(), Load::Media(sequence), size, has_more, now);
                let datagram = encode_media(header, sequence, packet.time, false, &packet.payload);
                self.protection.protect(sequence, &packet, now);
                self.history.sent(sequence, packet, most_kept(self.settings.latency));
                (datagram, dropped)
            }
        };
        self.counts.left = (self.counts.left.0 + media, self.counts.left.1 + size);
        self.lost(dropped, now);
        Some(datagram)
    }
}

fn encode_media(header: Header, sequence: u64, time: Time, is_again: bool, packed: &[u8]) -> Vec<u8> {
    let (sequence, time) = (low_bits(sequence), low_bits(micros(time)));
    let (is_packed, payload) = (stuffing::has_left_out(packed), stuffing::payload(packed));
    encode_data(header, Content::Media { sequence, time, is_again, is_packed, payload })
}

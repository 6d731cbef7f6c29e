use std::net::{IpAddr, Ipv4Addr};

use quinn::{ClientConfig, Endpoint, ServerConfig};

use super::*;

/// A connection over loopback, and what keeps it open.
async fn connected() -> (Connection, [Endpoint; 2]) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key).unwrap();
    let server = Endpoint::server(config, any).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut client = Endpoint::client(any).unwrap();
    client.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots)).unwrap());
    let connecting = client.connect(server.local_addr().unwrap(), "localhost").unwrap();
    let (accepted, connection) = tokio::join!(async { server.accept().await.unwrap().await }, connecting);
    drop(accepted.unwrap());
    (connection.unwrap(), [client, server])
}

#[tokio::test]
async fn an_answer_counts_until_it_has_arrived() {
    let (connection, _open) = connected().await;
    let sharing = Sharing::declared(Algorithm::Reno);
    let address: IpAddr = Ipv4Addr::LOCALHOST.into();
    let join = || {
        let factory = WeightedFactory::new(sharing.clone(), InFlight::default());
        (factory.join(connection.clone(), Some(address)), factory.joined.get().copied().unwrap())
    };
    let ((short, (short_slot, member)), (long, (long_slot, _))) = (join(), join());
    let parts = || [short_slot, long_slot].map(|slot| sharing.lock().slots[&slot].weight.get());
    let now = sharing.epoch.time(Instant::now());

    long.count(Some(Weight::ONE));
    short.count(Some(Weight::ONE));
    sharing.lock().group.on_sent(member, 0..1000, now);
    short.count(None);
    sharing.lock().arrived();
    assert_eq!(parts(), [0.5, 0.5]);

    sharing.lock().group.release(member, 0..1000);
    sharing.lock().arrived();
    assert_eq!(parts()[1], 1.0);
}

#[tokio::test]
async fn clients_behind_one_address_are_one_client_or_each_its_own() {
    let (connection, _open) = connected().await;
    let sharing = Sharing::declared(Algorithm::Reno);
    let join = |address| {
        let factory = WeightedFactory::new(sharing.clone(), InFlight::default());
        let membership = factory.join(connection.clone(), address);
        membership.count(Some(Weight::ONE));
        membership
    };
    let weight = |of: &Membership| sharing.lock().slots[&of.slot].weight.get();
    let behind_nat: IpAddr = Ipv4Addr::LOCALHOST.into();
    let (one, two) = (join(Some(behind_nat)), join(Some(behind_nat)));
    let (alone, also_alone) = (join(None), join(None));
    assert_eq!([&one, &two, &alone, &also_alone].map(weight), [0.5, 0.5, 1.0, 1.0]);
}

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Groups that note what they are told.
#[derive(Clone, Default)]
struct Noted(Arc<Note>);

#[derive(Default)]
struct Note {
    /// Of each socket, in the order of joining: its pool and its weights.
    told: Mutex<Vec<(String, Vec<f64>)>>,
    are_away: AtomicBool,
    are_sending: AtomicBool,
}

impl SocketGroups for Noted {
    fn join(&self, _: OwnedFd, pool: &str, weight: Weight) -> Option<Box<dyn SocketMember>> {
        if self.0.are_away.load(Ordering::Relaxed) {
            return None;
        }
        let mut told = self.0.told.lock().unwrap();
        told.push((pool.to_owned(), vec![weight.get()]));
        Some(Box::new((self.clone(), told.len() - 1)))
    }

    fn look(&self) {}
}

impl SocketMember for (Noted, usize) {
    fn weigh(&self, weight: Weight) {
        self.0.0.told.lock().unwrap()[self.1].1.push(weight.get());
    }

    fn is_sending(&self) -> bool {
        self.0.0.are_sending.load(Ordering::Relaxed)
    }
}

struct World {
    groups: Noted,
    file: watch::Sender<Arc<Weights>>,
    sharing: Arc<TcpSharing>,
    socket: TcpListener,
}

const FILE: &str = "claims = true\nshared_addresses = [\"10.0.9.9\"]\n\
                    [[pool]]\nname = \"campus\"\nclients = \"10.0.0.0/8\"\n\
                    [[rule]]\npath = \"/premium/*\"\nweight = 8\n[[rule]]\nby_need = true\n";

fn world() -> World {
    let (groups, file) = (Noted::default(), watch::Sender::new(Arc::new(FILE.parse().unwrap())));
    let sharing = TcpSharing::new(file.subscribe(), Box::new(groups.clone()));
    World { groups, file, sharing, socket: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap() }
}

impl World {
    fn enter(&self, address: &str) -> Option<Sharer> {
        self.sharing.enter(address.parse().unwrap(), &self.socket)
    }

    fn told(&self, number: usize) -> Vec<f64> {
        self.groups.0.told.lock().unwrap()[number]
            .1
            .iter()
            .map(|weight| (weight * 1e3).round() / 1e3)
            .collect()
    }
}

fn get(path: &str, cmcd: &str) -> Request<()> {
    Request::get(path).header("CMCD-Request", cmcd).body(()).unwrap()
}

#[tokio::test]
async fn a_connection_shares_from_its_first_answer_on_by_what_it_is_asked() {
    let world = world();
    assert!(world.enter("192.0.2.1").is_none(), "it is in no pool");
    let player = world.enter("10.0.0.1").unwrap();
    assert!(world.groups.0.told.lock().unwrap().is_empty());
    drop(player.answer(&get("/premium/a", "")));
    assert_eq!(world.groups.0.told.lock().unwrap()[0].0, "campus");
    // By its buffer, and as that fills.
    drop(player.answer(&get("/a", "bl=1000")));
    drop(player.answer(&get("/a", "bl=40000")));
    drop(player.answer(&get("/a", "")));
    assert_eq!(world.told(0), [8.0, 1.3, 0.5, 1.0]);
    drop(player);
    assert!(world.sharing.lock().seats.is_empty() && world.sharing.lock().pools.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_client_has_one_weight_for_all_its_connections_until_an_answer_has_arrived() {
    let world = world();
    let (one, other) = (world.enter("10.0.0.1").unwrap(), world.enter("10.0.0.1").unwrap());
    let long = one.answer(&get("/premium/a", ""));
    world.groups.0.are_sending.store(true, Ordering::Relaxed);
    drop(other.answer(&get("/premium/b", "")));
    let sharing = world.sharing.clone();
    let running = tokio::spawn(async move { sharing.run().await });
    sleep(Duration::from_secs(1)).await;
    assert_eq!((world.told(0), world.told(1)), (vec![8.0, 4.0], vec![8.0, 4.0]));
    world.groups.0.are_sending.store(false, Ordering::Relaxed);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(world.told(0), [8.0, 4.0, 8.0]);
    // Whoever shares an address has a weight of its own.
    let (nat, also) = (world.enter("10.0.9.9").unwrap(), world.enter("10.0.9.9").unwrap());
    let answers = (nat.answer(&get("/premium/a", "")), also.answer(&get("/premium/a", "")));
    assert_eq!((world.told(2), world.told(3)), (vec![8.0], vec![8.0]));
    drop((answers, long));
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn another_file_holds_for_running_answers() {
    let world = world();
    let sharing = world.sharing.clone();
    let running = tokio::spawn(async move { sharing.run().await });
    let player = world.enter("10.0.0.1").unwrap();
    let answer = player.answer(&get("/premium/a", ""));
    world.file.send_replace(Arc::new(FILE.replace("= 8", "= 2").parse().unwrap()));
    sleep(Duration::from_millis(10)).await;
    assert_eq!(world.told(0), [8.0, 2.0]);
    drop(answer);
    world.file.send_replace(Arc::new(FILE.parse().unwrap()));
    sleep(Duration::from_millis(10)).await;
    assert_eq!(world.told(0), [8.0, 2.0], "nothing is answered");
    running.abort();
}

#[tokio::test]
async fn where_there_are_no_groups_a_connection_asks_again_with_its_next_answer() {
    let world = world();
    let player = world.enter("10.0.0.1").unwrap();
    world.groups.0.are_away.store(true, Ordering::Relaxed);
    drop(player.answer(&get("/premium/a", "")));
    assert!(world.groups.0.told.lock().unwrap().is_empty());
    world.groups.0.are_away.store(false, Ordering::Relaxed);
    drop(player.answer(&get("/premium/a", "")));
    assert_eq!(world.told(0), [8.0]);
}

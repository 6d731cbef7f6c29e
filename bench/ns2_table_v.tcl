# usage: ns bench/ns2_table_v.tcl P LENGTH WINDOW SECONDS SEED
# Table V of MULTFRC without MULTFRC: 16 TCPs over 5 Mbps and 500 ms behind 312 packets. A part P of the packets is lost: by themselves with
# LENGTH 0, or by ns-2's exponential error model whose errors last for LENGTH packets on the mean. Prints the mean goodput in kbps from 50 s on.
lassign $argv p length window seconds seed
set ns [new Simulator]
$defaultRNG seed [expr {1000 + 7919 * $seed}]
foreach {name value} {packetSize_ 1000 windowInit_ 2 minrto_ 0.2 maxrto_ 60 tcpTick_ 0.01 rtxcur_init_ 3.0 singledup_ 1} {
    Agent/TCP set $name $value
}
Agent/TCP set window_ $window
Queue set limit_ 5000
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right 5Mb 230ms DropTail
$ns queue-limit $left $right 312
if {$length > 0} {
    # A state lasts for whole packets: an error of a mean of LENGTH loses 1 / (1 - exp(-1 / LENGTH)) of them.
    set lost [expr {1.0 / (1 - exp(-1.0 / $length))}]
    $ns lossmodel [new ErrorModel/Expo "[expr {$lost * (1 - $p) / $p - 0.5}] $length" pkt] $left $right
} elseif {$p > 0} {
    $ns lossmodel [new ErrorModel/Uniform $p pkt] $left $right
}
set start [new RandomVariable/Uniform]
$start set min_ 0
$start set max_ 5
for {set i 0} {$i < 16} {incr i} {
    set sender [$ns node]
    set receiver [$ns node]
    $ns duplex-link $sender $left 100Mb 10ms DropTail
    $ns duplex-link $right $receiver 100Mb 10ms DropTail
    set tcp($i) [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $sender $tcp($i)
    $ns attach-agent $receiver $sink
    $ns connect $tcp($i) $sink
    set greedy [new Application/FTP]
    $greedy attach-agent $tcp($i)
    $ns at [$start value] "$greedy start"
}
proc acked {} {
    global tcp
    set sum 0
    for {set i 0} {$i < 16} {incr i} { incr sum [$tcp($i) set ack_] }
    return $sum
}
$ns at 50.0 {set before [acked]}
$ns at $seconds {puts [expr {([acked] - $before) * 8.0 / 16 / ($seconds - 50)}]; exit 0}
$ns run

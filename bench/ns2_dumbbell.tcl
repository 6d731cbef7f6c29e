# usage: ns bench/ns2_dumbbell.tcl FLOWS SEED OVERHEAD
# Half TCP, half TFRC over the reference's dumbbell R5; OVERHEAD is the longest random delay of a TCP's sending, in seconds. Prints time, flow
# and bytes that have left the bottleneck, every second from 50 s on.
lassign $argv flows seed overhead
set ns [new Simulator]
$defaultRNG seed [expr {1000 + 7919 * $seed}]
foreach {name value} {
    packetSize_ 1000 window_ 10000 windowInit_ 2 minrto_ 0.2 maxrto_ 60 tcpTick_ 0.01 rtxcur_init_ 3.0 singledup_ 1
} { Agent/TCP set $name $value }
Agent/TCP set overhead_ $overhead
Queue set limit_ 5000
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right 15Mb 20ms DropTail
$ns queue-limit $left $right 100
set start [new RandomVariable/Uniform]
$start set min_ 0
$start set max_ 2
for {set i 0} {$i < $flows} {incr i} {
    set sender [$ns node]
    set receiver [$ns node]
    $ns duplex-link $sender $left 100Mb 1ms DropTail
    $ns duplex-link $right $receiver 100Mb [expr {2.6 * ($i / 2) / ($flows / 2 - 1)}]ms DropTail
    if {$i % 2} {
        set source [new Agent/TFRC]
        $source set packetSize_ 1040
        set sink [new Agent/TFRCSink]
    } else {
        set source [new Agent/TCP/Sack1]
        set sink [new Agent/TCPSink/Sack1]
    }
    $ns attach-agent $sender $source
    $ns attach-agent $receiver $sink
    $ns connect $source $sink
    $source set fid_ $i
    if {$i % 2} {
        $ns at [$start value] "$source start"
    } else {
        set greedy [new Application/FTP]
        $greedy attach-agent $source
        $ns at [$start value] "$greedy start"
    }
}
set monitor [$ns makeflowmon Fid]
$ns attach-fmon [$ns link $left $right] $monitor
proc sample {} {
    global ns monitor
    foreach flow [$monitor flows] { puts "[$ns now] [$flow set flowid_] [$flow set bdepartures_]" }
    $ns at [expr {[$ns now] + 1.0}] sample
}
$ns at 50.0 sample
$ns at 200.01 "exit 0"
$ns run

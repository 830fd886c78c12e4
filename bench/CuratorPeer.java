import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Curator's InterProcessMutex, as peers.py asks for it. Arguments: HOSTS THREADS SECONDS. */
class CuratorPeer {
  public static void main(String[] arguments) throws Exception {
    int threads = Integer.parseInt(arguments[1]);
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(arguments[0], new ExponentialBackoffRetry(100, 5));
    client.start();
    client.blockUntilConnected();
    System.out.println("ready");
    new BufferedReader(new InputStreamReader(System.in)).readLine();
    AtomicLong had = new AtomicLong();
    AtomicBoolean over = new AtomicBoolean();
    Thread[] crew = new Thread[threads];
    for (int i = 0; i < threads; ++i) {
      crew[i] = new Thread(() -> work(client, had, over));
      crew[i].start();
    }
    Thread.sleep((long) (1000 * Double.parseDouble(arguments[2])));
    over.set(true);
    System.out.println(had.get());
    for (Thread one : crew) one.join();
    client.close();
  }

  static void work(CuratorFramework client, AtomicLong had, AtomicBoolean over) {
    InterProcessMutex lock = new InterProcessMutex(client, "/peer/curator");
    try {
      while (!over.get()) {
        lock.acquire();
        had.incrementAndGet();
        lock.release();
      }
    } catch (Exception wrong) {
      throw new RuntimeException(wrong);
    }
  }
}
